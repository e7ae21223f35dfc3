"""What pygls leaves to do of the protocol: documents of our own, answers to requests that are wrong or out of turn, and headers of
messages that are held against the protocol: it passes over what it does not know, and would wait for ever for the message behind
a broken one."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, lsp_method

_BEFORE: Final = types.ResponseError(types.ErrorCodes.ServerNotInitialized, "the server is not initialized")
_AFTER: Final = types.ResponseError(types.ErrorCodes.InvalidRequest, "the server has been shut down")
_NO_JSON: Final = types.ResponseError(types.ErrorCodes.ParseError, "the message is no JSON that can be read")
_LENGTH: Final = re.compile(rb"content-length:[ \t]*(\d{1,12})[ \t]*\r?\n", re.IGNORECASE)
_OTHER: Final = re.compile(rb"[-\w]+:[^\r\n]*\r?\n")
_LONGEST_LINE: Final = 4_096
MOST: Final = 64_000_000  # bytes of one message
_log = logging.getLogger(__name__)


class Messages:
    """Reads messages: what `StdinAsyncReader` of pygls needs of standard input. Behind a header that is none it is at its end,
    and says why."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._length: int | None = None
        self._broken = False

    def readline(self) -> bytes:
        """The next header, spelled as pygls expects it, or the empty line behind the last one."""
        line = b"" if self._broken else self._stream.readline(_LONGEST_LINE)
        if (found := _LENGTH.fullmatch(line)) is not None:
            self._length = int(found[1])
            if self._length > MOST:
                return self._end(f"a message of {self._length} bytes is more than the {MOST} that it reads")
            return b"Content-Length: %d\r\n" % self._length
        if not line or _OTHER.fullmatch(line) is not None:
            return line
        if line.strip() or not self._length:
            return self._end(f"{line[:60]!r} is no header of a message, which begins with its Content-Length")
        return b"\r\n"

    def read(self, size: int) -> bytes:
        """The message, which is `size` bytes; less where the client is gone."""
        self._length = None
        return self._stream.read(size)

    def _end(self, why: str) -> bytes:
        _log.error("the session ends: %s", why)
        self._broken = True
        return b""


def _handed_on(method: str) -> Any:
    """Opening, changing and closing, which pygls would do to documents of its own first."""

    @lsp_method(method)
    def handed_on(self: ServerProtocol, params: Any) -> Iterator[Any]:
        yield self.fm.features[method], (params,), None

    return handed_on


class ServerProtocol(LanguageServerProtocol):
    """Every request gets an answer; opening, changing and closing go to the server's own `documents`."""

    initialized = False
    shut_down = False

    def structure_message(self, data: dict[str, Any]) -> Any:
        """The message in a JSON object. One that does not fit its method is answered here, as it has no handler."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def refuse_message(self) -> None:
        """Answer a message that is no JSON."""
        self._send_response(None, error=_NO_JSON)  # type: ignore[arg-type]

    def handle_message(self, message: Any) -> None:
        method = getattr(message, "method", None)
        if method == types.INITIALIZE:
            self.initialized = True
        elif method is not None and method != types.EXIT and (self.shut_down or not self.initialized):
            if hasattr(message, "id"):
                self._send_response(message.id, error=_AFTER if self.shut_down else _BEFORE)
            return
        self.shut_down = self.shut_down or method == types.SHUTDOWN
        super().handle_message(message)

    lsp_text_document__did_open = _handed_on(types.TEXT_DOCUMENT_DID_OPEN)
    lsp_text_document__did_change = _handed_on(types.TEXT_DOCUMENT_DID_CHANGE)
    lsp_text_document__did_close = _handed_on(types.TEXT_DOCUMENT_DID_CLOSE)
    lsp_notebook_document__did_open = _handed_on(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    lsp_notebook_document__did_change = _handed_on(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    lsp_notebook_document__did_close = _handed_on(types.NOTEBOOK_DOCUMENT_DID_CLOSE)

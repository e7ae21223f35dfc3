"""The server program: which method of the session answers which message, and the streams it talks over. What pygls leaves to do of the
protocol is here: answers to requests that are wrong or out of turn, and headers of messages that are held against the protocol. It passes
over what it does not know, and would wait for ever for the message behind a broken one."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from gpulint.server.diagnostics import KINDS
from gpulint.server.session import Session
from gpulint.version import __version__

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


class ServerProtocol(LanguageServerProtocol):
    """Every request gets an answer."""

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


# What is to say about a line: the document's URI and the line, counted from 0, give Markdown.
EXPLAIN: Final = "gpulint.server.explainLine"


class GpulintServer(LanguageServer):
    """Speaks the protocol. `session` is there from `initialize` on; the protocol lets nothing else through before."""

    session: Session
    protocol: ServerProtocol

    def __init__(self) -> None:
        cells = types.NotebookDocumentFilterWithNotebook(
            "jupyter-notebook", [types.NotebookCellLanguage("python")]
        )
        notebooks = types.NotebookDocumentSyncOptions([cells], save=True)
        super().__init__(
            "gpulint", __version__, notebook_document_sync=notebooks, protocol_cls=ServerProtocol
        )

    def report_server_error(self, error: Exception, source: Any) -> None:
        """What goes wrong outside a request is logged; pygls would open a message box for each."""
        _log.error("%s: %s", type(error).__name__, error)
        if isinstance(error, (ValueError, RecursionError)):  # of json: nobody knows which message it was
            self.protocol.refuse_message()


def serve(verbose: bool) -> int:
    """Talk over standard input and output until the client is done or gone; the exit status.

    0 after the client's `shutdown`, otherwise 1, as the protocol has it.
    """
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    # The thread that waits for input would hold up any other end
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server = create()
    # Whatever else writes to standard output, a project's own rule for one, must not get between the messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    server.start_io(cast(BinaryIO, Messages(sys.stdin.buffer)), out)
    return 0 if server.protocol.shut_down else 1


def create() -> GpulintServer:
    """A server with its handlers, not yet started."""
    server = GpulintServer()
    _notices(server)
    _requests(server)
    return server


def _notices(server: GpulintServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.session = Session(server, params)

    def hand_on(method: str, handle: Callable[[Session, Any], None]) -> None:
        @server.feature(method)
        def told(params: Any) -> None:
            handle(server.session, params)

    for method, handle in _TOLD.items():
        hand_on(method, handle)


# What the client tells, and who hears it, once pygls has given it to the documents.
_TOLD: Final[dict[str, Callable[[Session, Any], None]]] = {
    types.INITIALIZED: lambda session, _: session.ready(),
    types.TEXT_DOCUMENT_DID_OPEN: lambda session, params: session.changed(params.text_document.uri, 0),
    types.TEXT_DOCUMENT_DID_CHANGE: lambda session, params: session.changed(params.text_document.uri),
    types.TEXT_DOCUMENT_DID_SAVE: lambda session, _: session.saved(),
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: Session.files_changed,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: lambda session, params: session.configured(params.settings),
    types.NOTEBOOK_DOCUMENT_DID_OPEN: lambda session, params: session.changed(
        params.notebook_document.uri, 0
    ),
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: lambda session, params: session.changed(params.notebook_document.uri),
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: lambda session, params: session.drop(params.notebook_document.uri),
    types.NOTEBOOK_DOCUMENT_DID_SAVE: lambda session, _: session.saved(),
}


def _requests(server: GpulintServer) -> None:
    pull = types.DiagnosticOptions(
        inter_file_dependencies=True, workspace_diagnostics=False, identifier="gpulint"
    )

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, pull)
    async def diagnostic(params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
        items = await server.session.pulled(params.text_document.uri)
        return types.RelatedFullDocumentDiagnosticReport(items)

    offered = types.CodeActionOptions(list(KINDS), resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, offered)
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        return await server.session.actions(params)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(params: types.CodeAction) -> types.CodeAction:
        return await server.session.resolved(params)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        return await server.session.hovered(params)

    @server.command(EXPLAIN)
    async def explain(uri: str, row: int) -> str:
        return await server.session.line_explained(uri, row)

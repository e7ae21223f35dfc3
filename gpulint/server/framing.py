"""The headers before each message, held against the protocol: pygls passes over what it does not know, and would wait for ever
for the message behind a broken one."""

from __future__ import annotations

import logging
import re
from typing import BinaryIO, Final

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

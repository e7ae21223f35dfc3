"""Keeps the end of a stream, however much comes through it."""

from __future__ import annotations

import threading
from typing import IO

from gpulint.units import format_bytes

KEPT = 1 << 20  # bytes


class Tail:
    """Reads a pipe on a thread of its own, so that the writer never waits, and keeps the last megabyte."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = bytearray()
        self._dropped = 0
        self._thread = threading.Thread(target=self._read, name="gpulint-output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while data := self._stream.read1(1 << 16):  # type: ignore[attr-defined]
                self._kept += data
                if len(self._kept) > 2 * KEPT:
                    self._dropped += len(self._kept) - KEPT
                    del self._kept[:-KEPT]
        except (OSError, ValueError):
            return

    def close(self) -> None:
        """Wait for the end of the stream, which has come once every writer is gone."""
        self._thread.join(timeout=2.0)
        if not self._thread.is_alive():
            self._stream.close()

    def text(self) -> str:
        """What was kept; a first line says how much was not."""
        kept = self._kept[-KEPT:]
        dropped = self._dropped + len(self._kept) - len(kept)
        text = kept.decode("utf-8", errors="replace")
        return f"[… {format_bytes(dropped)} before this were dropped]\n{text}" if dropped else text

"""The processes of a run: everything that descends from it is found by a mark in its environment, and ended; and the end of what
they print is kept."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from typing import IO

from gpulint.units import format_bytes

RUN = "GPULINT_RUN"


def why_not_started(python: str, script: str | None, folder: str = "") -> str | None:
    """Why an interpreter cannot even begin with a script in a folder, in one sentence; None where it can. A module (None) it finds
    itself."""
    if shutil.which(python) is None:
        return f"the interpreter {python} does not exist or cannot be executed"
    path = os.path.join(folder, script) if script is not None else folder
    if script is not None and not os.access(path, os.R_OK):
        return f"the script {script} {'cannot be read' if os.path.exists(path) else 'does not exist'}"
    return None


def descendants(run: str) -> set[int]:
    """The process ids that carry the run's mark, or are in its process group. The mark is found on Linux
    only, where it also catches processes that made a session of their own, as torchrun's workers do."""
    found: set[int] = set()
    if sys.platform != "linux":
        return found
    wanted = f"{RUN}={run}".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as environment:
            if wanted in environment.read().split(b"\0"):  # of one that is dead nothing is read
                found.add(int(entry))
    return found


def end_all(run: str, group: int, grace: float = 2.0) -> int:
    """End whatever is left of the run: ask first, kill after `grace` seconds. Returns how many had to be
    ended."""
    left = descendants(run)
    _signal(left, group, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        if not descendants(run):
            break
        time.sleep(0.02)
    for _ in range(20):  # a process may be forking while it is read
        remaining = descendants(run)
        _signal(remaining, group, signal.SIGKILL)
        if not remaining:
            break
        time.sleep(0.02)
    return len(left)


def _signal(pids: set[int], group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


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

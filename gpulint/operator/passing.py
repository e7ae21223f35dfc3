"""Signals that reach `gpulint run` are passed on to the program: once, and only if it has not got them already."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

PASSED_ON: Final = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM")
    if hasattr(signal, name)
)
_PR_SET_PDEATHSIG: Final = 1
_SENT_BY_A_PROCESS: Final = 0  # si_code SI_USER and below; above it the kernel speaks, for the terminal
# The number of a signal, and when it came (seconds of the monotonic clock)
_NOTE: Final = struct.Struct("=Bd")
_SAME: Final = 0.5  # signals to a group reach its processes within this many seconds of each other
_PATIENCE: Final = 0.1


def die_with_parent() -> Callable[[], None]:
    """A function for the child side of a fork: the kernel kills the child when its parent ends. Everything is
    looked up before the fork. Does nothing where there is no such thing (macOS)."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None

    def arrange() -> None:
        if library is not None:
            library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)

    return arrange


def before_exec() -> Callable[[], None]:
    """What the child does before it becomes the program: it gets no blocked signals, and dies with its parent."""
    unblock, held, arrange = signal.pthread_sigmask, (*PASSED_ON, signal.SIGCHLD), die_with_parent()

    def prepare() -> None:
        unblock(signal.SIG_UNBLOCK, held)
        arrange()

    return prepare


@contextlib.contextmanager
def signals_held() -> Iterator[Witness | None]:
    """Hold signals back so that they can be taken one by one with their origin. Gives the witness, None where the
    system cannot tell the origin (macOS)."""
    held = (*PASSED_ON, signal.SIGCHLD)
    # A disposition of "ignore" would discard SIGCHLD before it can be waited for.
    earlier = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    witness = Witness() if hasattr(signal, "sigwaitinfo") else None
    try:
        yield witness
    finally:
        if witness is not None:
            witness.end()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, earlier or signal.SIG_DFL)


def wait(child: subprocess.Popen[bytes], witness: Witness | None) -> int:
    """The program's return code, negative for a signal; passes signals on until then."""
    if witness is None:
        return _wait_with_handlers(child)
    while True:
        code = child.poll()
        if code is not None:
            return code
        got = signal.sigtimedwait((*PASSED_ON, signal.SIGCHLD), 5.0)
        if got is None or got.si_signo == signal.SIGCHLD:
            continue
        if got.si_code > _SENT_BY_A_PROCESS or witness.saw(got.si_signo):
            continue
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(got.si_signo)


class Witness:
    """A second process of the group that notes which signals reach it: those reach the program as well, and
    passing them on would deliver them twice."""

    def __init__(self) -> None:
        arrange = die_with_parent()
        # Above the standard streams, of which one may be closed.
        self._pipe, writing = (_moved_up(end) for end in os.pipe())
        self._seen: list[tuple[int, float]] = []
        self._pid = os.fork()
        if self._pid == 0:
            try:
                arrange()
                _note(writing, self._pipe)
            finally:
                os._exit(0)
        os.close(writing)

    def saw(self, number: int) -> bool:
        """Whether a signal that has just come here has reached the whole group."""
        now = time.monotonic()
        while True:
            for record in self._seen:
                if record[0] == number and abs(record[1] - now) < _SAME:
                    self._seen.remove(record)
                    return True
            left = now + _PATIENCE - time.monotonic()
            if left <= 0 or not select.select([self._pipe], [], [], left)[0]:
                # Signals of the terminal are noted as well, and never asked for.
                self._seen = [record for record in self._seen if abs(record[1] - now) < _SAME]
                return False
            data = os.read(self._pipe, 64 * _NOTE.size)  # notes are written whole, and read whole
            self._seen += [(int(n), float(when)) for n, when in _NOTE.iter_unpack(data)]

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        os.close(self._pipe)


def _moved_up(end: int) -> int:
    if end > 2:
        return end
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(end)
    return moved


def _note(writing: int, reading: int) -> None:
    """The witness's life."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.close(reading)
    while True:
        number = signal.sigwaitinfo(PASSED_ON).si_signo
        os.write(writing, _NOTE.pack(number, time.monotonic()))


def _wait_with_handlers(child: subprocess.Popen[bytes]) -> int:
    """Where signals cannot be taken with their origin (macOS): pass on all but those of the terminal."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    before = {}
    for number in PASSED_ON:
        at_terminal = (
            number in (signal.SIGINT, signal.SIGQUIT) and sys.stdin is not None and sys.stdin.isatty()
        )
        before[number] = signal.signal(
            number, signal.SIG_IGN if at_terminal else lambda got, _: child.send_signal(got)
        )
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

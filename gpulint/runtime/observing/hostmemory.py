"""Host memory: of this process, cheaply, resident size and what malloc has handed out; and of the processes that the script has
started, a DataLoader's workers and others.

What they share with this process, as all that was there before a fork, is not theirs until one of the two writes to it: so it is
the proportional set size that is read, in which a shared page counts in part. Linux alone tells it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from typing import Any, ClassVar

from gpulint.runtime.probes.plain import attribute, elements_of
from gpulint.runtime.record.besides import ProcessMemory

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class HostMemory:
    """Keeps the file that is read open; `rss` and `heap` give None where the platform does not say."""

    def __init__(self) -> None:
        self._statm = -1
        self._mallinfo: Any = None
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            with contextlib.suppress(OSError, AttributeError):  # musl, or glibc before 2.33
                self._mallinfo = ctypes.CDLL(None).mallinfo2
                self._mallinfo.restype = _Mallinfo2

    def rss(self) -> int | None:
        """Resident bytes of this process."""
        if self._statm < 0:
            return None
        return int(os.pread(self._statm, 128, 0).split()[1]) * _PAGE

    def heap(self, apart: int = 0) -> int | None:
        """Bytes that glibc's malloc has handed out on the main arena and by mmap, `apart` from so many."""
        if self._mallinfo is None:
            return None
        info = self._mallinfo()
        return int(info.uordblks) + int(info.hblkhd) - apart


_MALLINFO = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()


class _Mallinfo2(ctypes.Structure):
    _fields_: ClassVar = [(name, ctypes.c_size_t) for name in _MALLINFO]


SHARE = 0.01  # of the time, for reading; but for the first readings
FIRST, APART = 6, 3  # readings that are taken whatever they take, so many steps from each other
MOST = 4  # processes of each kind that are read


class Relatives:
    """Reads now and then. `loaded` is told of each DataLoader's iterator, `step` after each step."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._spent = 0.0
        self._taken = 0
        self._loaders: dict[int, bool] = {}  # process -> whether it outlives a pass
        self._known: set[int] = set()  # iterators, by their ids
        self._readings: dict[int, tuple[str, list[tuple[float, int, int]]]] = {}

    def loaded(self, iterator: Any) -> None:
        """A DataLoader's iterator is asked for a batch."""
        workers = attribute(iterator, "_workers")
        if workers and id(workers) not in self._known:
            self._known.add(id(workers))
            lasting = bool(attribute(iterator, "_persistent_workers"))
            self._loaders.update((worker.pid, lasting) for worker in elements_of(workers))

    def step(self, number: int) -> None:
        """So many steps have been taken."""
        begin = time.perf_counter()
        since = begin - self._begin
        if number % APART or (self._taken >= FIRST and self._spent > SHARE * since):
            return
        found = _descendants(os.getpid())
        if not found:
            return
        self._taken += 1
        chosen = [pid for pid in found if pid in self._loaders][:MOST]
        chosen += [pid for pid in found if pid not in self._loaders][:MOST]
        for pid in chosen:
            size = read_kib(f"/proc/{pid}/smaps_rollup", "Pss:")
            if size is not None:
                name = "" if pid in self._loaders else _command(pid)
                self._readings.setdefault(pid, (name, []))[1].append((since, number, size))
        self._spent += time.perf_counter() - begin

    def figures(self) -> tuple[ProcessMemory, ...]:
        """What was read of each."""
        found, workers = [], len(self._loaders)
        for pid, (name, readings) in self._readings.items():
            lasts, columns = self._loaders.get(pid, True), map(tuple, zip(*readings, strict=True))
            found.append(ProcessMemory(pid, pid in self._loaders, name, lasts, workers, *columns))
        return tuple(found)


def _descendants(pid: int) -> list[int]:
    """The processes that one has started, and those that they have."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as children:
                for child in map(int, children.read().split()):
                    found += [child, *_descendants(child)]
    return found


def read_kib(path: str, name: str) -> int | None:
    """Bytes that a file of /proc tells under a name, in kB there; None where it does not."""
    with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii", errors="replace") as lines:
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
    return None


def _command(pid: int) -> str:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as text:
        words = [os.fsdecode(word) for word in text.read().split(b"\0")]
        return " ".join(filter(None, words))[:100]
    return ""

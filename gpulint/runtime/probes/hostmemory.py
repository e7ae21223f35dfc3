"""The process's own memory, cheaply: resident size, and what malloc has handed out."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import ClassVar

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class HostMemory:
    """Keeps the file that is read open; `rss` and `heap` give None where the platform does not say."""

    def __init__(self) -> None:
        self._statm = -1
        if sys.platform == "linux":
            try:
                self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                self._statm = -1
        self._heap = _malloc_reader()

    def rss(self) -> int | None:
        """Resident bytes of this process."""
        if self._statm < 0:
            return None
        return int(os.pread(self._statm, 128, 0).split()[1]) * _PAGE

    def heap(self) -> int | None:
        """Bytes that glibc's malloc has handed out on the main arena and by mmap."""
        return self._heap() if self._heap is not None else None


_MALLINFO = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()


class _Mallinfo2(ctypes.Structure):
    _fields_: ClassVar = [(name, ctypes.c_size_t) for name in _MALLINFO]


def _malloc_reader() -> Callable[[], int] | None:
    if sys.platform != "linux":
        return None
    try:
        read = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):  # musl, or glibc before 2.33
        return None
    read.restype = _Mallinfo2

    def used() -> int:
        info = read()
        return int(info.uordblks) + int(info.hblkhd)

    return used

"""Leaves no process behind: finds everything that descends from a run by a mark in its environment, and ends
it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

RUN = "GPULINT_RUN"


def descendants(run: str, group: int) -> set[int]:
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
            if wanted in environment.read().split(b"\0") and not _is_dead(int(entry)):
                found.add(int(entry))
    return found


def _is_dead(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()[0] == b"Z"
    return True


def end_all(run: str, group: int, grace: float = 2.0) -> int:
    """End whatever is left of the run: ask first, kill after `grace` seconds. Returns how many had to be
    ended."""
    left = descendants(run, group)
    _signal(left, group, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        if not descendants(run, group):
            break
        time.sleep(0.02)
    for _ in range(20):  # a process may be forking while it is read
        remaining = descendants(run, group)
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

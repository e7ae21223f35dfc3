"""Processes of this machine: owner, command line, whether they use a GPU, and how to end one safely."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

PROC: Final = Path("/proc")
_DEVICES: Final = ("/dev/nvidia", "/dev/dxg")  # the second one under WSL


@dataclass(frozen=True, slots=True)
class Process:
    """A running process. `started` is its start time in clock ticks: with the number it names the process for
    good, since numbers are used again."""

    pid: int
    uid: int
    user: str
    command: str
    started: int


def describe(pid: int) -> Process | None:
    """What /proc says of a process, or None where it does not exist (or lies in another PID namespace)."""
    folder = PROC / str(pid)
    try:
        uid = folder.stat().st_uid
        started = _started(folder)
        raw = (folder / "cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        return None
    words = [part.decode(errors="replace") for part in raw.split(b"\0") if part]
    command = " ".join(words) or _name(folder)
    said = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in command)
    return Process(pid, uid, _user(uid), said, started)


def _started(folder: Path) -> int:
    # The name in parentheses may hold blanks and parentheses itself.
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    if fields[0] in ("Z", "X"):
        raise ValueError("ended, and waiting for its parent to notice")
    return int(fields[19])


def _name(folder: Path) -> str:
    try:
        return f"[{(folder / 'comm').read_text().strip()}]"
    except OSError:
        return ""


def _user(uid: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return str(uid)


def opens_gpu(pid: int) -> bool | None:
    """Whether a process has a device file of a GPU open; None where that may not be seen. Needs no NVML, and works in
    containers, where NVML's process numbers may be the host's."""
    try:
        handles = list((PROC / str(pid) / "fd").iterdir())
    except OSError:
        return None
    for handle in handles:
        try:
            target = os.readlink(handle)
        except OSError:
            continue
        if target.startswith(_DEVICES) and target != "/dev/nvidiactl":
            return True
    return False


def ancestors() -> set[int]:
    """This process and those that started it."""
    found, pid = set(), os.getpid()
    while pid > 1 and pid not in found:
        found.add(pid)
        try:
            pid = int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found


Outcome = Literal["ended", "killed", "gone", "alive"]


def end(process: Process, grace: float, say: Callable[[str], None] = lambda _: None) -> Outcome:
    """End a process: TERM, and KILL if it is still there after `grace` seconds.

    "ended" by TERM, "killed" by KILL, "gone" before anything was sent, "alive" if even KILL did not end it
    within ten seconds (a process that waits in the driver). Raises PermissionError where it is not ours.
    """
    handle = _open(process)
    if handle is None:
        return "gone"
    try:
        _send(handle, process, signal.SIGTERM)
        if _wait(handle, process, grace):
            return "ended"
        say(f"{process.pid} did not react to TERM within {grace:g} s: KILL")
        _send(handle, process, signal.SIGKILL)
        return "killed" if _wait(handle, process, 10.0) else "alive"
    except ProcessLookupError:
        return "ended"
    finally:
        if handle >= 0:
            os.close(handle)


def _open(process: Process) -> int | None:
    """A handle of exactly this process (-1 where the system has none); None if it is gone."""
    opener = getattr(os, "pidfd_open", None)
    try:
        handle = opener(process.pid) if opener is not None else -1
    except ProcessLookupError:
        return None
    except OSError:
        handle = -1
    now = describe(process.pid)
    if now is None or now.started != process.started:
        if handle >= 0:
            os.close(handle)
        return None
    return int(handle)


def _send(handle: int, process: Process, number: int) -> None:
    if handle >= 0:
        signal.pidfd_send_signal(handle, number)
    elif (now := describe(process.pid)) is not None and now.started == process.started:
        os.kill(process.pid, number)


def _wait(handle: int, process: Process, seconds: float) -> bool:
    if handle >= 0:
        return bool(select.select([handle], [], [], seconds)[0])
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        now = describe(process.pid)
        if now is None or now.started != process.started:
            return True
        time.sleep(0.1)
    return False

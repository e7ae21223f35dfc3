"""Processes of this machine: owner, command line, whether they use a GPU, and how to end one safely."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from gpulint.memory.accounts.driver import NoDriver

_DEVICES: Final = ("/dev/nvidia", "/dev/dxg")  # the second one under WSL


@dataclass(frozen=True, slots=True)
class Process:
    """A running process. `handle` is psutil's, which knows it by its number and its start time: numbers are used again."""

    pid: int
    uid: int
    user: str
    command: str
    handle: Any


def _psutil() -> Any:
    try:
        import psutil
    except ImportError as error:
        raise NoDriver("the library psutil is not installed: pip install psutil") from error
    return psutil


def describe(pid: int) -> Process | None:
    """A process, or None where it does not exist (or lies in another PID namespace). Raises NoDriver without psutil."""
    psutil = _psutil()
    try:
        handle = psutil.Process(pid)
        if not _lives(handle):
            return None
        command = " ".join(filter(None, handle.cmdline())) or f"[{handle.name()}]"
        said = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in command)
        return Process(pid, handle.uids().real, handle.username(), said, handle)
    except psutil.Error:
        return None


def environment(pid: int) -> dict[str, str]:
    """The variables that a process was started with; none where they may not be seen."""
    psutil = _psutil()
    try:
        return dict(psutil.Process(pid).environ())
    except psutil.Error:
        return {}


def _lives(handle: Any) -> bool:
    """Whether it is there, and does not only wait for its parent to notice that it has ended."""
    psutil = _psutil()
    try:
        return bool(handle.is_running() and handle.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD))
    except psutil.NoSuchProcess:
        return False


def opens_gpu(pid: int) -> bool | None:
    """Whether a process has a device file of a GPU open; None where that may not be seen. Needs no NVML, and works in
    containers, where NVML's process numbers may be the host's. psutil lists regular files alone."""
    try:
        handles = list(Path(f"/proc/{pid}/fd").iterdir())
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
    this = _psutil().Process()
    return {this.pid, *(one.pid for one in this.parents())}


Outcome = Literal["ended", "killed", "gone", "alive"]


def end(process: Process, grace: float, say: Callable[[str], None] = lambda _: None) -> Outcome:
    """End a process: TERM, and KILL if it is still there after `grace` seconds.

    "ended" by TERM, "killed" by KILL, "gone" before anything was sent, "alive" where it may not be signalled, or if even
    KILL did not end it within ten seconds (a process that waits in the driver).
    """
    psutil = _psutil()
    outcome: Outcome = "gone"
    try:
        process.handle.terminate()
        outcome = "ended"
        if not _over(process.handle, grace):
            say(f"{process.pid} did not react to TERM within {grace:g} s: KILL")
            process.handle.kill()
            outcome = "killed" if _over(process.handle, 10.0) else "alive"
    except psutil.NoSuchProcess:
        return outcome
    except psutil.AccessDenied:
        return "alive"
    return outcome


def _over(handle: Any, seconds: float) -> bool:
    """Whether it ends within so many seconds; one that its parent does not take note of, too, which psutil waits for."""
    limit = time.monotonic() + seconds
    while _lives(handle):
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True

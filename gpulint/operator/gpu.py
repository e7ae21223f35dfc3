"""The cards of this machine and the processes on them, through NVML and psutil: owner, command line, and how to end one safely."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from gpulint.memory.accounts.driver import NoDriver as NoDriver
from gpulint.memory.accounts.driver import driver as driver
from gpulint.memory.accounts.driver import memory_on, sizes_on, text_of
from gpulint.runtime.record.peaks import Neighbour
from gpulint.runtime.record.records import Record
from gpulint.units import format_bytes

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
        with contextlib.suppress(OSError):
            target = os.readlink(handle)
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


UNSEEN = 128 * 1024**2  # bytes that nobody accounts for, above which somebody is there who cannot be seen


@dataclass(frozen=True, slots=True)
class Tenant(Record):
    """A process on a card. `bytes` is None where the driver does not tell, `user` and `command` are "" where the
    process cannot be seen from here (another container, another user's under hidepid)."""

    pid: int
    bytes: int | None
    user: str = ""
    command: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class Card(Record):
    """One GPU. Sizes in bytes, temperature in degrees Celsius, `load` in percent, `power` in watts; None where the
    card does not tell. `problem` says why a card cannot be read at all (it has fallen off the bus)."""

    index: int
    name: str = ""
    uuid: str = ""
    total: int | None = None
    used: int | None = None
    free: int | None = None
    temperature: int | None = None
    load: int | None = None
    power: float | None = None
    tenants: tuple[Tenant, ...] = ()
    problem: str = ""

    @property
    def unexplained(self) -> int:
        """Used memory that no listed process accounts for; 0 where the driver does not tell their sizes."""
        if self.used is None or any(tenant.bytes is None for tenant in self.tenants):
            return 0
        return max(0, self.used - sum(tenant.bytes or 0 for tenant in self.tenants))


def read_cards(nvml: Any, kept: bool = True) -> list[Card]:
    """All cards with the processes on them. What the driver keeps for itself is in use only where it is `kept` so."""
    return [_card(nvml, index, kept) for index in range(nvml.nvmlDeviceGetCount())]


def _card(nvml: Any, index: int, kept: bool) -> Card:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        name, uuid = nvml.nvmlDeviceGetName(handle), nvml.nvmlDeviceGetUUID(handle)
    except nvml.NVMLError as error:
        return Card(index, problem=str(error))

    def told(question: str, *more: Any) -> Any:
        """None of a card that does not support the question: under MIG it takes rights to ask the whole card."""
        try:
            return getattr(nvml, f"nvmlDeviceGet{question}")(handle, *more)
        except nvml.NVMLError:
            return None

    memory, rates, power = told("MemoryInfo"), told("UtilizationRates"), told("PowerUsage")
    sizes = sorted(sizes_on(nvml, handle).items(), key=lambda one: -(one[1] or 0))
    return Card(
        index,
        text_of(name),
        text_of(uuid),
        total=None if memory is None else int(memory.total),
        used=None if memory is None else int(memory.used) if kept else memory_on(nvml, handle)[0],
        free=None if memory is None else int(memory.free),
        temperature=told("Temperature", nvml.NVML_TEMPERATURE_GPU),
        load=None if rates is None else rates.gpu,
        power=None if power is None else power / 1000,
        tenants=tuple(_tenant(pid, size) for pid, size in sizes),
    )


def _tenant(pid: int, size: int | None) -> Tenant:
    """The process under a number of the driver's, as far as it is one of this container's that has a GPU open."""
    known = describe(pid)
    if known is None or opens_gpu(pid) is False:
        # Not here, or the number is the host's and by chance that of another process here.
        return Tenant(pid, size)
    return Tenant(pid, size, known.user, known.command, known.uid == os.getuid())


# -- who else is on the cards that a run can see ---------------------------------------------------------------


def look(kept: bool = False) -> tuple[list[Card], str]:
    """The cards, with the processes on them; and why the driver could not be asked. What it keeps for itself is in use only where
    that is wanted, or where it cannot tell."""
    try:
        with driver() as nvml:
            return read_cards(nvml, kept), ""
    except NoDriver as error:
        return [], str(error)


def others(cards: list[Card], environment: Mapping[str, str], when: Any = "before") -> tuple[Neighbour, ...]:
    """The processes on the cards that CUDA_VISIBLE_DEVICES leaves a run, which itself must not be running. One that
    takes memory and is listed nowhere has the number 0."""
    found: list[Neighbour] = []
    for card in visible(cards, environment.get("CUDA_VISIBLE_DEVICES")):
        unseen = [Tenant(0, card.unexplained)] if card.unexplained > UNSEEN else []
        for one in (*card.tenants, *unseen):
            name = f"GPU {card.index} ({card.name})"
            found.append(Neighbour(name, card.uuid, one.pid, one.bytes, one.command, when))
    return tuple(found)


def visible(cards: list[Card], setting: str | None) -> list[Card]:
    """The cards that a setting of CUDA_VISIBLE_DEVICES leaves. Of parts of a card (MIG) it is not known which card they are
    of: then all count."""
    if setting is None or "MIG" in setting:
        return cards
    wanted: list[Card] = []
    for word in (part.strip() for part in setting.split(",")):
        match = [card for card in cards if word and (word == str(card.index) or card.uuid.startswith(word))]
        if not match:
            break  # CUDA, too, sees nothing of what comes after a card that is not there
        wanted += match[:1]
    return wanted


# -- for people ------------------------------------------------------------------------------------------------


def table(cards: list[Card]) -> Any:
    """A rich renderable of all cards."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = []
    for card in cards:
        heading = Text.assemble((f"GPU {card.index}  {card.name}", "bold"), "  ", _state(card))
        rows = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
        for column, right in (("PID", True), ("user", False), ("memory", True), ("command", False)):
            rows.add_column(column, justify="right" if right else "left", no_wrap=column != "command")
        for tenant in card.tenants:
            size = "?" if tenant.bytes is None else format_bytes(tenant.bytes)
            rows.add_row(str(tenant.pid), tenant.user or "?", size, tenant.command or "not visible from here")
        parts.append(heading)
        if card.problem:
            parts += [Text(f"  cannot be read: {card.problem}"), Text("")]
            continue
        parts.append(rows if card.tenants else Text("  no process", style="dim"))
        if card.unexplained > 512 * 1024**2:
            more = f"{format_bytes(card.unexplained)} more are in use"
            parts.append(Text(f"  {more}, by processes not visible from here"))
        parts.append(Text(""))
    return Group(*parts)


def _state(card: Card) -> str:
    memory = "" if card.problem else "memory not told"
    if card.used is not None and card.total is not None and card.free is not None:
        used, total, free = map(format_bytes, (card.used, card.total, card.free))
        memory = f"{used} of {total} used, {free} free"
    words = (
        memory,
        "" if card.load is None else f"{card.load} % busy",
        "" if card.temperature is None else f"{card.temperature} °C",
        "" if card.power is None else f"{card.power:.0f} W",
    )
    return "  ".join(filter(None, words))


CLEAR = """\
There is nothing to clear from here: a cache belongs to the process that filled it, and no other process can empty it.
A process that has ended, or crashed, holds nothing any more: the driver takes its memory back at once.

What can be done:
  - in the training process: `gpulint.memory.clear()` between phases returns its cache to the driver, and
    `clear(force=True)` names the tensors that cannot be freed and who holds them
  - peaks and limits are a process's own as well: `memory.reset_peak()` and `memory.limit(0.8)` act in the one that calls them
  - a process of yours that should be gone: `gpulint gpu kill PID`
  - fragmentation in the training process: `gpulint run --alloc-conf auto -- ...` from the start\
"""


# -- ending processes ------------------------------------------------------------------------------------------


def candidates(pids: Iterable[int], cards: list[Card]) -> tuple[list[Process], dict[int, str]]:
    """Which of the named processes may be ended: the user's own, on a GPU, not this one or its parents; and why the others not.

    Open device files decide who is on a GPU; where they may not be seen, NVML's list, `cards`.
    """
    on_card = {tenant.pid for card in cards for tenant in card.tenants}
    protected = ancestors()
    allowed: list[Process] = []
    refused: dict[int, str] = {}
    for pid in dict.fromkeys(pids):
        process = describe(pid)
        if process is None:
            refused[pid] = "there is no such process here"
        elif pid in protected or pid <= 1:
            refused[pid] = "it is this command or one that started it"
        elif process.uid != os.getuid():
            refused[pid] = f"it belongs to {process.user}"
        elif not (pid in on_card if (opens := opens_gpu(pid)) is None else opens):
            refused[pid] = f"it uses no GPU ({process.command[:60]})"
        else:
            allowed.append(process)
    return allowed, refused

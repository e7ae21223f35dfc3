"""Takes the account of this process: with what stretches of the program took on a card past torch's allocator, written down under a
name, and how large a CUDA context is there, which a process of its own tells that makes one and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from gpulint.memory.accounts.driver import NoDriver, contexts, read_card, share_of, text_of, uuid_of
from gpulint.memory.accounts.driver import driver as nvml_library
from gpulint.memory.accounts.records import Account, Card, Entry, How
from gpulint.memory.accounts.segments import entries
from gpulint.memory.device import UNUSED, cuda_missing, cuda_started, device_index, say_once, torch_module

CONTEXT = "CUDA context"


def account(device: Any = None, *, measure_context: bool = False) -> Account:
    """Where the bytes of this process on `device` are (None: the current one), down to those that nobody explains.

    Reads torch's segments, what the driver says of the card and its processes, and what `book` wrote down; finds the tensors
    by a scan of all objects (0.15 s for 400,000). Changes nothing and never starts CUDA. `measure_context=True` starts a process
    that makes a CUDA context on that card and nothing else, to know how much of the rest is that: some seconds, and that much
    more of the card meanwhile.
    """
    missing = cuda_missing() or ("" if cuda_started() else UNUSED)
    if missing:
        return Account(os.getpid(), missing=missing)
    index = device_index(device)
    if index not in contexts():
        return Account(os.getpid(), missing=f"this process has no CUDA context on cuda:{index}")
    return _of_device(index, measure_context)


def accounts() -> tuple[Account, ...]:
    """One account for each card on which this process has a context; one that says what is missing where there is none."""
    # Without asking whether CUDA could be: that would keep children forked later from using it
    if not cuda_started():
        return (Account(os.getpid(), missing=UNUSED),)
    return tuple(_of_device(index, False) for index in contexts())


def _of_device(index: int, measure_context: bool) -> Account:
    torch = torch_module()
    inside = entries(index)
    reserved = sum(entry.bytes for entry in inside)
    uuid = uuid_of(index)
    card = _card(index, uuid)
    process, source, notes, card = _own_share(uuid, card, reserved)
    with _lock:
        outside = [Entry(name, size, How.BOOKED) for (on, name), size in _booked.items() if on == uuid]
    known = Account(
        pid=os.getpid(),
        device=index,
        name=torch.cuda.get_device_name(index),
        uuid=uuid or "",
        inside=inside,
        outside=tuple(outside),
        process=process,
        source=source,
        card=card,
        pinned=_pinned(),
        notes=(*notes, *_unbooked(outside)),
    )
    if not measure_context:
        return known
    return with_context(known, lambda: measured_context(index, lambda: _card(index, uuid)))


def with_context(account: Account, measure: Callable[[], int]) -> Account:
    """With the size of the CUDA context, unless that was booked; with why it is not known where `measure` raises NotMeasured or
    NoDriver."""
    if account.missing or any(entry.name == CONTEXT for entry in account.outside):
        return account
    try:
        entry = Entry(CONTEXT, measure(), How.MEASURED, "of a fresh process on this card")
    except (NotMeasured, NoDriver) as problem:
        return replace(account, notes=(*account.notes, f"the CUDA context was not measured: {problem}"))
    return replace(account, outside=(entry, *account.outside))


def _card(index: int, uuid: str | None) -> Card:
    """As the driver tells it; without NVML, as CUDA does, which counts what the driver keeps as used by nobody."""
    with suppress(NoDriver), nvml_library() as nvml:
        if uuid is not None and (card := read_card(nvml, uuid)) is not None:
            return card
    free, total = torch_module().cuda.mem_get_info(index)
    return Card(int(total) - int(free), int(total))


def _own_share(uuid: str | None, card: Card, reserved: int) -> tuple[int | None, str, list[str], Card]:
    """What this process has on the card, who says so, what is to be said besides, and the card with the others."""
    share, source = share_of(os.getpid(), card.tenants, reserved)
    if share is not None:
        others = tuple(one for one in card.tenants if one is not share)
        return share.bytes, source, [], replace(card, tenants=others)
    before = _before.get(uuid or "")
    if before is not None:
        grown = "the growth of the card's use since before this process started CUDA"
        return card.used - before, f"{grown}; other processes are taken to have stayed as they were", [], card
    how = '`with memory.book("CUDA context"): torch.cuda.init()` at the program\'s start settles it'
    return None, source, [how], card


def _pinned() -> int | None:
    """Page-locked host memory in torch's own cache of it; None where this torch does not tell."""
    tell = getattr(torch_module().cuda, "host_memory_stats", None)
    found = None
    if tell is not None:
        with suppress(RuntimeError):
            found = tell().get("allocated_bytes.current")
    # Whole pages: torch 2.11 counts a few bytes where there is nothing.
    return None if found is None else int(found) // 4096 * 4096


def _unbooked(outside: list[Entry]) -> list[str]:
    """What is known to take memory outside, and was not measured."""
    distributed = getattr(torch_module(), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return []
    if "nccl" not in str(distributed.get_backend()) or any("NCCL" in entry.name for entry in outside):
        return []
    start = 'put its start into `with memory.book("NCCL")`'
    return [f"NCCL is in use, and its buffers are not told apart: {start}"]


# -- booked ------------------------------------------------------------------------------------------------------

_lock = threading.Lock()
_booked: dict[tuple[str, str], int] = {}  # a card's UUID and a name -> bytes
# What was in use on each card when the first stretch began, if CUDA had not been started
_before: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class _Reading:
    """By a card's UUID: its use, this process's part of it where the driver lists that, and torch's part of that."""

    used: dict[str, int]
    own: dict[str, int]
    reserved: dict[str, int]

    def outside(self, uuid: str, by_process: bool) -> int:
        taken = self.own.get(uuid, 0) if by_process else self.used.get(uuid, 0)
        return taken - self.reserved.get(uuid, 0)


@contextmanager
def book(name: str) -> Iterator[None]:
    """Measure what a block takes on the cards outside torch's allocator, and let `account` tell it under `name`.

        with memory.book("CUDA context"):
            torch.cuda.init()
        with memory.book("NCCL"):
            dist.init_process_group("nccl"); dist.barrier()

    The figure is the growth of what the driver lists for this process, less that of torch's cache. Where it lists no processes (in
    containers) it is the growth of the card's use, and what another process takes meanwhile counts too.
    A block in which nothing grows books nothing, and a second one of that name is added. Begun before CUDA is in use, it also
    settles how much of the card is this process's where the driver does not tell (in containers); both need the library
    nvidia-ml-py. Waits for the GPU at both ends; without CUDA it does nothing.
    """
    if cuda_missing() is not None:
        yield
        return
    fresh = not cuda_started()
    before = _read()
    if fresh:
        for uuid, used in before.used.items():
            _before.setdefault(uuid, used)
    yield
    after = _read()
    if not before.used:
        say_once(f"memory.book({name!r}) measures nothing: no driver answers (pip install nvidia-ml-py)")
    with _lock:
        for uuid in before.used.keys() & after.used.keys():
            by_process = uuid in after.own and (fresh or uuid in before.own)
            grown = after.outside(uuid, by_process) - before.outside(uuid, by_process)
            if grown > 0:
                _booked[uuid, name] = _booked.get((uuid, name), 0) + grown


def _read() -> _Reading:
    torch = torch_module()
    reserved = {}
    if cuda_started():
        for index in contexts():
            torch.cuda.synchronize(index)
            uuid = uuid_of(index)
            if uuid is not None:
                reserved[uuid] = int(torch.cuda.memory_reserved(index))
    used, own = {}, {}
    with suppress(NoDriver), nvml_library() as nvml:
        for index in range(nvml.nvmlDeviceGetCount()):
            uuid = text_of(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index)))
            if (card := read_card(nvml, uuid)) is not None:
                used[uuid] = card.used
                share, _ = share_of(os.getpid(), card.tenants, reserved.get(uuid, 0))
                # Before CUDA has started, whoever is listed is not this process
                if cuda_started() and share is not None and share.bytes is not None:
                    own[uuid] = share.bytes
    return _Reading(used, own, reserved)


# -- measured ----------------------------------------------------------------------------------------------------

_NEAR = 4 * 1024**2  # two readings that differ by less say the same
_CODE = """
import sys, torch
torch.cuda.set_device({index})
torch.cuda.init()
torch.cuda.synchronize()
print("up", flush=True)
sys.stdin.read()
"""


class NotMeasured(RuntimeError):
    """The message says why."""


def measured_context(
    index: int,
    look: Callable[[], Card],
    interpreter: str = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> int:
    """The bytes that a fresh process's context takes on the card that CUDA numbers `index` there.

    `look` tells the state of that card. What it lists for the process counts; where it lists none, the growth of the card's use, in
    which another process that comes or goes would be counted, so two measurements must agree. Takes some seconds, and that much of the card for as long. Raises NotMeasured.
    """
    given = os.environ if environment is None else environment
    sizes: list[int] = []
    for _ in range(4):
        now = _measured_once(index, look, interpreter, given)
        for size in sizes:
            if abs(size - now) <= _NEAR and size > 0:
                return size
        sizes.append(now)
    raise NotMeasured(f"the card's use does not hold still: {sizes} bytes in four measurements")


def _measured_once(
    index: int, look: Callable[[], Card], interpreter: str, environment: Mapping[str, str]
) -> int:
    before, pipe = look(), subprocess.PIPE
    given = {name: value for name, value in environment.items() if name != "GPULINT_RUN_FOLDER"}
    code = _CODE.format(index=index)
    try:
        process = subprocess.Popen(
            [interpreter, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=given
        )
    except OSError as error:
        raise NotMeasured(f"{interpreter} cannot be started: {error.strerror}") from error
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            if process.stdout.readline() != "up\n":
                last = process.stderr.read().strip().splitlines()[-1:] or ["it ended without a word"]
                raise NotMeasured(f"a fresh process cannot use CUDA: {last[0]}")
            after = look()
            listed = [tenant.bytes for tenant in after.tenants if tenant.pid == process.pid]
            return listed[0] if listed and listed[0] is not None else after.used - before.used
        finally:
            process.kill()

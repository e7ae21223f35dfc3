"""Takes the account of this process."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gpulint.memory.accounts import booking
from gpulint.memory.accounts.context import NotMeasured, measured_context
from gpulint.memory.accounts.driver import NoDriver, contexts, driver, read_card, share_of, uuid_of
from gpulint.memory.accounts.records import Account, Card, Entry, How
from gpulint.memory.accounts.segments import entries
from gpulint.memory.device import cuda_missing, cuda_started, device_index, torch_module

CONTEXT = "CUDA context"
UNUSED = "CUDA has not been used in this process"


def account(device: Any = None, *, measure_context: bool = False) -> Account:
    """Where the bytes of this process on `device` are (None: the current one), down to those that nobody explains.

    Reads torch's segments, what the driver says of the card and its processes, and what `book` wrote down; finds the tensors
    by a scan of all objects (0.15 s for 400,000). Changes nothing and never starts CUDA. `measure_context=True` starts a process
    that makes a CUDA context on that card and nothing else, to know how much of the rest is that: some seconds, and that much
    more of the card meanwhile.
    """
    missing = cuda_missing()
    if missing is None and not cuda_started():
        missing = UNUSED
    if missing is not None:
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
    outside = [Entry(name, size, How.BOOKED) for name, size in booking.booked(uuid or "")]
    if measure_context and not any(entry.name == CONTEXT for entry in outside):
        try:
            size = measured_context(index, lambda: _card(index, uuid))
            outside.insert(0, Entry(CONTEXT, size, How.MEASURED, "of a fresh process on this card"))
        except NotMeasured as problem:
            notes.append(f"the CUDA context was not measured: {problem}")
    return Account(
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


def _card(index: int, uuid: str | None) -> Card:
    """As the driver tells it; without NVML, as CUDA does, which counts what the driver keeps as used by nobody."""
    with suppress(NoDriver), driver() as nvml:
        card = read_card(nvml, uuid) if uuid is not None else None
        if card is not None:
            return card
    free, total = torch_module().cuda.mem_get_info(index)
    return Card(int(total) - int(free), int(total))


def _own_share(uuid: str | None, card: Card, reserved: int) -> tuple[int | None, str, list[str], Card]:
    """What this process has on the card, who says so, what is to be said besides, and the card with the others."""
    share, source = share_of(os.getpid(), card.tenants, reserved)
    if share is not None:
        others = tuple(one for one in card.tenants if one is not share)
        return share.bytes, source, [], replace(card, tenants=others)
    before = booking.used_before(uuid or "")
    if before is not None:
        grown = "the growth of the card's use since before this process started CUDA"
        return card.used - before, f"{grown}; other processes are taken to have stayed as they were", [], card
    how = '`with memory.book("CUDA context"): torch.cuda.init()` at the program\'s start settles it'
    return None, source, [how], card


def _pinned() -> int | None:
    """Page-locked host memory in torch's own cache of it; None where this torch does not tell."""
    tell = getattr(torch_module().cuda, "host_memory_stats", None)
    if tell is None:
        return None
    try:
        figures = tell()
    except RuntimeError:
        return None
    found = figures.get("allocated_bytes.current")
    # Whole pages: torch 2.11 counts a few bytes where there is nothing.
    return None if found is None else int(found) // 4096 * 4096


def _unbooked(outside: list[Entry]) -> list[str]:
    """What is known to take memory outside, and was not measured."""
    distributed = getattr(torch_module(), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return []
    if "nccl" not in str(distributed.get_backend()) or any("NCCL" in entry.name for entry in outside):
        return []
    return [
        'NCCL is in use, and its buffers are not told apart: put its start into `with memory.book("NCCL")`'
    ]

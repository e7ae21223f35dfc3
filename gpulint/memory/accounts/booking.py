"""What stretches of the program took on a card past torch's allocator, written down under a name."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from gpulint.memory.accounts.driver import NoDriver, contexts, driver, read_card, share_of, text_of, uuid_of
from gpulint.memory.device import cuda_missing, cuda_started, say_once, torch_module

_lock = threading.Lock()
_booked: dict[tuple[str, str], int] = {}  # a card's UUID and a name -> bytes
_before: dict[
    str, int
] = {}  # what was in use on each card when the first stretch began, if CUDA had not been started


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


def booked(uuid: str) -> list[tuple[str, int]]:
    """The names and bytes booked on a card."""
    with _lock:
        return [(name, size) for (card, name), size in _booked.items() if card == uuid]


def used_before(uuid: str) -> int | None:
    """What was in use on the card before this process started CUDA, where somebody looked."""
    return _before.get(uuid)


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
    with suppress(NoDriver), driver() as nvml:
        for index in range(nvml.nvmlDeviceGetCount()):
            uuid = text_of(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index)))
            if (card := read_card(nvml, uuid)) is not None:
                used[uuid] = card.used
                if not cuda_started():
                    continue  # whoever is listed, it is not this process
                share, _ = share_of(os.getpid(), card.tenants, reserved.get(uuid, 0))
                if share is not None and share.bytes is not None:
                    own[uuid] = share.bytes
    return _Reading(used, own, reserved)

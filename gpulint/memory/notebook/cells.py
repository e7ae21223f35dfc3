"""What one cell did to memory: what it left, who holds that, and what it freed."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpulint.memory.device import cuda_started, started_devices, torch_module
from gpulint.memory.live import on_device, storage_key
from gpulint.memory.notebook.holding import Storage, grouped, name_holders, storages
from gpulint.memory.peaks import PeakWindow, close_window, open_window
from gpulint.runtime.probes.plain import live_tensors
from gpulint.units import format_bytes

MOST_LINES = 12
ON_CPU = "no CUDA here: live tensors in host memory, and no peak"


@dataclass(frozen=True, slots=True)
class _Known:
    """A storage as it was before the cell; `alive` answers None once it is freed."""

    alive: weakref.ref[Any]
    storage: Storage


@dataclass(slots=True)
class Cell:
    """A measurement between `begin` and `end`."""

    shell: Any
    device: Any = None  # None: CUDA
    before: dict[Any, _Known] = field(default_factory=dict)
    figures: dict[int, tuple[int, int]] = field(default_factory=dict)
    peaks: list[PeakWindow] = field(default_factory=list)

    def lines(self) -> list[str]:
        """End the measurement, and say what came of it."""
        for window in self.peaks:
            close_window(window)
        collected = gc.collect()
        if self.device is not None and cuda_started():  # the cell was the first to use CUDA
            self.device, self.before = None, {}
            self.peaks = [window for index in started_devices() for window in _whole(index)]
        found = storages(self.device)
        complete = name_holders(self.shell, found, self.device)
        known = {key for key, one in self.before.items() if one.alive() is not None}
        left = {key: storage for key, storage in found.items() if key not in known}
        freed = {key: one.storage for key, one in self.before.items() if one.alive() is None}
        told = list(self._head(collected, found))
        told += _part("left by this cell", left)
        told += _part("freed by this cell", freed)
        if not complete:
            told.append("  the notebook holds more objects than are looked into: some holders are not named")
        return told

    def _head(self, collected: int, found: dict[Any, Storage]) -> Iterator[str]:
        if self.device is not None:
            yield f"gpu_memory: {ON_CPU}"
            before = sum(one.storage.bytes for one in self.before.values())
            after = sum(one.bytes for one in found.values())
            yield f"  tensors {format_bytes(before)} -> {format_bytes(after)} ({format_bytes(after - before, signed=True)})"
            return
        cuda = torch_module().cuda
        for window in self.peaks:
            index = window.device
            allocated, reserved = int(cuda.memory_allocated(index)), int(cuda.memory_reserved(index))
            old, held = self.figures.get(index, (0, 0))
            if max(allocated, reserved, old, held, window.allocated):
                change = format_bytes(allocated - old, signed=True)
                yield (
                    f"gpu_memory: cuda:{index} allocated {format_bytes(old)} -> {format_bytes(allocated)} ({change}), peak"
                    f" {format_bytes(max(window.allocated, allocated))}; reserved {format_bytes(held)} -> {format_bytes(reserved)}"
                )


def begin(shell: Any) -> Cell:
    """Note what is alive, after collecting garbage, and start measuring the peak."""
    gc.collect()
    cell = Cell(shell, None if cuda_started() else torch_module().device("cpu"))
    found = storages(cell.device)
    name_holders(shell, found, cell.device)
    for tensor in live_tensors():
        if on_device(tensor, cell.device):
            key = storage_key(tensor)
            if key in found and key not in cell.before:
                cell.before[key] = _Known(weakref.ref(tensor.untyped_storage()), found[key])
    for index in started_devices():
        cuda = torch_module().cuda
        cell.figures[index] = (int(cuda.memory_allocated(index)), int(cuda.memory_reserved(index)))
        cell.peaks.append(open_window(index))
    return cell


def now(shell: Any) -> list[str]:
    """What is alive at this moment, by who holds it."""
    gc.collect()
    device = None if cuda_started() else torch_module().device("cpu")
    found = storages(device)
    name_holders(shell, found, device)
    told = []
    if device is not None:
        told.append(f"gpu_memory: {ON_CPU}")
    for index in started_devices():
        cuda = torch_module().cuda
        sizes = format_bytes(cuda.memory_allocated(index)), format_bytes(cuda.memory_reserved(index))
        told.append(f"gpu_memory: cuda:{index} allocated {sizes[0]}, reserved {sizes[1]}")
    return told + _part("alive", found)


def _whole(index: int) -> Iterator[PeakWindow]:
    window = PeakWindow(index)
    with contextlib.suppress(RuntimeError):
        close_window(window)
    yield window


def _part(title: str, found: dict[Any, Storage]) -> list[str]:
    total = sum(one.bytes for one in found.values())
    if not total:
        return [f"  {title}: nothing"]
    holdings = [one for one in grouped(found) if one.bytes]
    told = [f"  {title}: {format_bytes(total)}", *(f"  {one}" for one in holdings[:MOST_LINES])]
    rest = holdings[MOST_LINES:]
    if rest:
        told.append(f"  {format_bytes(sum(one.bytes for one in rest)):>11}  in {len(rest)} smaller groups")
    return told

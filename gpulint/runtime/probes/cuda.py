"""The probe on CUDA: the caching allocator's own figures, and its record of which line allocated each live
block; and that record as a whole, with the snapshot it is written to (`gpulint verify --snapshot`).

It adds nothing to the stream and nothing to the device: 0 bytes, no synchronization, no dispatch mode (that
would bypass torch.compile). The record is kept for live blocks only, with Python frames only: both keep
snapshots cheap.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import os
import pickle
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import torch

from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.base import Block, Probe, Since, Tops
from gpulint.runtime.probes.crests import TRACED, CudaCrests, Live, by_site
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record.peaks import Stretch
from gpulint.runtime.record.result import Figures, Place

# What snapshots may take beyond those that the judgement needs: seconds of a run, and a share of the sampled time.
ALLOWANCE = 0.05
BUDGET = 0.01


class CudaProbe(Probe):
    """Sums over every device this process uses. Starts when the script first touches CUDA, not before: a
    context made early would be on the wrong device in a multi-GPU run."""

    name = "cuda-allocator"

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._started = False
        self._closely = False  # whether births shall be recorded with their lines
        self._whole = False  # whether all that happens is recorded, for a snapshot at the end
        self.on_first_use: Callable[[], None] | None = None
        self._marks = 0
        self._snapshots: list[tuple[int, Live]] = []  # mark, what was alive then
        self._sums: dict[int, dict[int, int]] = {}  # of each snapshot: live bytes by birth site
        self._settled: Live = {}
        self._addresses: list[int] = []
        self._devices: list[int] = []
        self._spent = 0.0
        self._last = 0.0
        self._clock: float | None = None  # when the marks that need no snapshot began
        self._tops = Tops()
        self._user_peaks: dict[tuple[int, str], int] = {}
        self._notes: dict[str, None] = {}  # in order
        self.crests: CudaCrests | None = None  # where the lines of peaks are asked for
        self._undo = ExitStack()

    def start(self) -> None:
        """Begin recording as soon as CUDA is initialized."""
        torch.cuda._lazy_call(self._begin)  # type: ignore[no-untyped-call]

    def _begin(self) -> None:
        self._started = True
        self.first_use = self._frames.index(sys._getframe())
        self._share_peaks()
        if self._closely or self._whole or self.crests is not None:
            self._record(True)
        if self.on_first_use is not None:
            self.on_first_use()

    def keep_history(self) -> None:
        self._whole = True

    def dump(self, path: str) -> str:
        """Write the snapshot; what came of it, for people."""
        return dump(path) if self._started else "No memory snapshot: the script did not use CUDA."

    def watch(self, closely: bool) -> None:
        changed, self._closely = closely != self._closely, closely
        if changed and self._started and not self._whole and self.crests is None:
            self._record(closely)

    def follow_peaks(self) -> None:
        self.crests = CudaCrests(self._frames.recorded)

    def peaks(self) -> dict[Stretch, tuple[int, dict[int, int]]]:
        if self.crests is None or not self._started:
            return {}
        self._snapshot()
        return {stretch: (crest.allocated, crest.parts) for stretch, crest in self.crests.best.items()}

    def _record(self, closely: bool) -> None:
        """Blocks that are alive keep their lines when recording ends."""
        try:
            ask = torch.cuda.memory._record_memory_history
            if self._whole:
                record()
            elif closely and self.crests is not None:
                ask("all", context="alloc", stacks="python", max_entries=TRACED)
            elif closely:
                ask("state", context="state", stacks="python")
            else:
                ask(None)
        except (RuntimeError, TypeError, AttributeError) as error:
            self._notes[f"Memory history could not be recorded ({error}); birth sites are unknown."] = None

    def used(self) -> bool:
        """Whether the script has anything on a GPU."""
        return self._started and bool(self._devices or self._used_devices())

    def skip_to(self, mark: int) -> None:
        self._marks = max(self._marks, mark)

    def free(self) -> int | None:
        found: list[int] = []
        for device in self._in_use():
            cached = _current(device, "current", "reserved_bytes") - _current(device, "current")
            found.append(torch.cuda.mem_get_info(device)[0] + cached)
        return min(found, default=None)

    def capacity(self) -> int | None:
        sizes = [torch.cuda.mem_get_info(device)[1] for device in self._in_use()]
        return min(sizes, default=None)

    def stop(self) -> None:
        self.crests = None
        self._closely = True  # so that recording ends, whoever asked for it
        self._whole = False
        self.watch(False)
        self._undo.close()

    # -- readings
    # ------------------------------------------------------------------------------------------------------

    def mark(self, wanted: bool) -> Figures:
        number, self._marks = self._marks, self._marks + 1
        if self.crests is not None:
            self.crests.split()
        if not self._started:
            return Figures(allocated=0, reserved=0, active=0, inactive_split=0, retries=0, ooms=0, peak=0)
        if number < 5 or not self._devices:
            self._devices = self._used_devices()
        stats = self._begin_anew()
        peak = sum(self._tops.of("mark", device, 0) for device in self._devices)
        self._tops.begin("mark")
        if wanted or self._affordable():
            self.attribute(number)
        names = ("allocated", "reserved", "active", "inactive_split")
        sizes = {name: sum(one[f"{name}_bytes"]["all"]["current"] for one in stats) for name in names}
        retries, ooms = (sum(one[name] for one in stats) for name in ("num_alloc_retries", "num_ooms"))
        return Figures(**sizes, retries=retries, ooms=ooms, peak=peak)

    def _begin_anew(self) -> list[Any]:
        """The figures of each device, whose counters of a highest point begin anew."""
        found = []
        for device in self._in_use():
            found.append(torch._C._cuda_memoryStats(device))
            self._keep_peaks(device, found[-1])
            torch._C._cuda_resetPeakMemoryStats(device)
        return found

    def attribute(self, mark: int) -> None:
        if self._started and (not self._snapshots or self._snapshots[-1][0] != mark):
            begin = time.perf_counter()
            self._snapshots.append((mark, self._snapshot()))
            self._last = time.perf_counter() - begin
            self._spent += self._last

    def _in_use(self) -> list[int]:
        """The devices that had memory at an early mark; before the first mark, those that have it now."""
        return self._devices or (self._used_devices() if self._started else [])

    def _used_devices(self) -> list[int]:
        devices = range(torch.cuda.device_count())
        return [device for device in devices if _current(device, "current", "reserved_bytes")]

    def _affordable(self) -> bool:
        now = time.perf_counter()
        if self._clock is None:
            self._clock, self._spent = now, 0.0
        return self._spent + self._last < ALLOWANCE + BUDGET * (now - self._clock)

    def _snapshot(self) -> Live:
        found = snapshot() if self.crests is not None else {"segments": _segments()}
        by_device: dict[int, Live] = {}
        for device, address, size, stack in allocated_blocks(found["segments"]):
            by_device.setdefault(device, {})[address] = (size, self._frames.recorded(stack))
        if self.crests is not None:
            self.crests.fold(found["device_traces"], by_device, cleared=not self._whole)
            if not self._whole:  # what was made use of is forgotten
                self._record(False)
                self._record(True)
            return self.crests.live
        return {address: block for blocks in by_device.values() for address, block in blocks.items()}

    def settle(self) -> None:
        self._settled = self._snapshot() if self._started else {}
        self._addresses = sorted(self._settled)

    def born(self, since: int) -> dict[Hashable, Block]:
        """Those that were not there at the first snapshot taken at or after `since`, and were there at every later one. An address
        that is freed and used again in every step looks old, and is."""
        usable = [(mark, live) for mark, live in reversed(self._snapshots) if mark >= since]
        born: dict[Hashable, Block] = {}
        for address, block in self._settled.items():
            after = next((mark for mark, live in usable if live.get(address) != block), None)
            if after is not None:
                born[address] = Block(block[1], "device", after, block[0])
        return born

    def alive(self) -> dict[Hashable, Block]:
        return {address: Block(site, "device", -1, size) for address, (size, site) in self._settled.items()}

    def series(self, site: int, place: Place, marks: list[int]) -> list[int] | None:
        for mark, live in self._snapshots[len(self._sums) :]:
            self._sums[mark] = by_site(live.values())
        if place != "device" or any(mark not in self._sums for mark in marks):
            return None
        return [self._sums[mark].get(site, 0) for mark in marks]

    def resolution(self, marks: list[int]) -> list[int]:
        taken = {mark for mark, _ in self._snapshots}
        return [mark for mark in marks if mark in taken]

    def key(self, tensor: Any) -> Hashable | None:
        try:
            storage = torch.Tensor.untyped_storage(tensor)
            if storage.device.type != "cuda":
                return None
            pointer = storage.data_ptr()
        except (NotImplementedError, RuntimeError, ValueError):
            return None
        position = bisect.bisect_right(self._addresses, pointer) - 1
        if position < 0:
            return None
        address = self._addresses[position]
        return address if pointer < address + self._settled[address][0] else None

    def allocated(self) -> int:
        return sum(_current(device, "current") for device in self._in_use())

    def peak(self, since: Since = "mark") -> int:
        return sum(self._tops.of(since, device, _current(device, "peak")) for device in self._in_use())

    def begin_peak(self, since: Since) -> int:
        self._begin_anew()
        self._tops.begin(since)
        return self.allocated()

    def notes(self) -> list[str]:
        return list(self._notes)

    # -- the peak counter, shared with the script
    # ----------------------------------------------------------------------

    def _keep_peaks(self, device: int, stats: Any) -> None:
        """Remember the counters before they are reset, by us or by the script for its own ends."""
        self._tops.keep(device, stats["allocated_bytes"]["all"]["peak"])
        for figure in ("allocated_bytes", "reserved_bytes"):
            key = (device, figure)
            self._user_peaks[key] = max(self._user_peaks.get(key, 0), stats[figure]["all"]["peak"])

    def _share_peaks(self) -> None:
        def resets(device: Any = None) -> None:
            index = torch.cuda._utils._get_device_index(device, optional=True)
            self._keep_peaks(index, torch._C._cuda_memoryStats(index))
            for figure in ("allocated_bytes", "reserved_bytes"):
                self._user_peaks.pop((index, figure), None)

        for module in (torch.cuda, torch.cuda.memory):
            self._undo.callback(hooks.around(module, "reset_peak_memory_stats", resets))
            for figure in ("allocated", "reserved"):
                reading = functools.partial(self._reading, figure=f"{figure}_bytes")
                self._undo.callback(hooks.wrap(module, f"max_memory_{figure}", reading))

    def _reading(self, original: Any, figure: str) -> Any:
        def reading(device: Any = None) -> int:
            index = torch.cuda._utils._get_device_index(device, optional=True)
            now: int = original(device)
            return max(now, self._user_peaks.get((index, figure), 0))

        return reading


def _current(device: int, what: str, figure: str = "allocated_bytes") -> int:
    return int(torch._C._cuda_memoryStats(device)[figure]["all"][what])


def allocated_blocks(segments: Iterable[Any]) -> Iterator[tuple[int, int, int, Any]]:
    """Device, address, bytes and recorded stack of each block that is allocated."""
    for segment in segments:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                yield segment["device"], block["address"], block["size"], block.get("frames") or ()


def _segments() -> Any:
    """The allocator's segments, without traces where this torch can leave them out (2.13 on)."""
    with without_inductor():
        try:
            return torch._C._cuda_memorySnapshot((0, 0, False))["segments"]
        except (TypeError, IndexError, RuntimeError):
            return torch._C._cuda_memorySnapshot(None)["segments"]


def snapshot() -> Any:
    """All that the allocator tells: segments and traces."""
    with without_inductor():
        return torch.cuda.memory._snapshot()


# -- the record as a whole -----------------------------------------------------------------------------------

# Events that torch keeps, the last ones: each costs a few KiB of host memory, and time whenever blocks are read.
ENTRIES: Final = 100_000


def record() -> None:
    """Record from now on, with the Python lines of allocations and frees."""
    torch.cuda.memory._record_memory_history("all", context="all", stacks="python", max_entries=ENTRIES)


@contextlib.contextmanager
def recorded() -> Iterator[bool]:
    """Record meanwhile, unless somebody does so already: whether it is begun here."""
    begun = not any(snapshot()["device_traces"])
    if begun:
        record()
    try:
        yield begun
    finally:
        if begun:
            torch.cuda.memory._record_memory_history(None)


def dump(path: str) -> str:
    """Write a snapshot to `path`, whole or not at all; what came of it, for people."""
    partial = f"{path}.{os.getpid()}.part"
    try:
        with open(partial, "wb") as file:
            pickle.dump(snapshot(), file, protocol=4)  # torch's own viewer reads no later one
        os.replace(partial, path)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        return f"No memory snapshot could be written to {path}: {error}."
    return f"A memory snapshot was written to {path}: `gpulint snapshot {path}` reads it."


def path_of(path: str, rank: int, alone: bool) -> str:
    """The file of one rank: `run.pickle`, or `run-rank1.pickle` where there are several."""
    stem, extension = os.path.splitext(path)
    return path if alone else f"{stem}-rank{rank}{extension}"


@contextlib.contextmanager
def without_inductor() -> Iterator[None]:
    """Keep torch from importing inductor meanwhile, unless the script has done so.

    To name a block's lines torch asks whether it has an attribute `_inductor`, which imports that, and dynamo with it, on
    the spot: seconds in the middle of a step of a script that compiles nothing and has no optimizer.
    """
    lazy: set[str] = getattr(torch, "_lazy_modules", set())
    hidden = lazy & {"_inductor"} if "torch._inductor" not in sys.modules else set()
    lazy -= hidden
    try:
        yield
    finally:
        lazy |= hidden

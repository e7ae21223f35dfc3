"""Where a test suite's memory is measured: GPUs, or the CPU in their place; and what is alive there.

The caching allocator tells its own figures, and its record which line allocated each block. Every process has an allocator of its own:
what another worker of the same suite, or another program, has on the card is in none of these figures.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Hashable, Mapping
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from gpulint.runtime.holding import holders
from gpulint.runtime.observing.calls import collect
from gpulint.runtime.observing.machine import has_cuda
from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.base import Block
from gpulint.runtime.probes.crests import by_site, changes_of, highest
from gpulint.runtime.probes.cuda import _segments, allocated_blocks, snapshot
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.probes.host import HostProbe
from gpulint.runtime.probes.plain import live_tensors
from gpulint.runtime.record.result import Holder, Site
from gpulint.units import format_bytes, plural


class Piece(NamedTuple):
    """Live memory: `size` bytes, born at the site with this index. `identity` is the weak reference of its storage, None
    where no Python object stands for it."""

    size: int
    site: int
    identity: Any


Pieces = dict[Hashable, Piece]
# Told the level, in bytes, that has passed the limit; gives the next limit, or None where no more is to be told.
Crossed = Callable[[int], int | None]


def identity(tensor: Any) -> Any:
    """The weak reference of a tensor's storage: the same one as long as the storage lives."""
    return weakref.ref(tensor.untyped_storage())


class PeakProbe(HostProbe):  # type: ignore[no-untyped-call]
    """Knows besides which lines' memory was alive at the highest point, and says when a limit is passed."""

    def __init__(self, frames: Frames) -> None:
        super().__init__(frames, everything=True)
        self._limit: int | None = None
        self._crossed: Crossed | None = None
        self._composition: dict[int, int] = {}

    def begin(self, limit: int | None, crossed: Crossed) -> None:
        self.begin_peak("line")
        self._limit, self._crossed = limit, crossed
        self.follow_peaks()
        assert self.crests is not None
        for code, size in self._totals.items():
            self.crests.add(code, size)

    def end(self) -> None:
        self._composition = self.composition()
        self.crests = self._crossed = None

    def composition(self) -> dict[int, int]:
        """Bytes by site at the highest point."""
        return self._composition if self.crests is None else self.peaks()["start"][1]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = super().__torch_dispatch__(func, types, args, kwargs)
        if self._limit is not None and self._crossed is not None and self.peak("line") > self._limit:
            level, self._limit = self.peak("line"), None
            self._limit = self._crossed(level)
        return out

    def pieces(self) -> Pieces:
        found: Pieces = {}
        for cdata, ref in list(self._table.items()):
            storage = ref()
            if storage is not None:
                found[cdata] = Piece(ref.size, ref.code // 4, weakref.ref(storage))
        return found


class Cpu:
    """What is asked of the CPU in a GPU's place, and of a `Gpu`. Between `enter` and the `leave` for it births are recorded with their
    lines; both may be nested."""

    kind = "cpu"
    card = "cpu"  # as a baseline knows it

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self._probe: PeakProbe | None = None
        self._entered = 0

    def enter(self) -> None:
        """Begin to record births."""
        self._entered += 1
        if self._entered == 1:
            self._probe = PeakProbe(self.frames)
            self._probe.start()
            self._probe.adopt()

    def leave(self) -> None:
        """End what the last `enter` began."""
        self._entered -= 1
        if self._entered == 0 and self._probe is not None:
            stack = _get_current_dispatch_mode_stack()
            if stack and stack[-1] is self._probe:
                self._probe.leave()
            else:  # a test has entered a mode and left it open: ours cannot be taken from under it
                self._probe.stop()
            self._probe = None

    def resume(self) -> None:
        """Record births again, where somebody else has ended that, which nobody can here."""

    def settle(self, wholly: bool = True) -> None:
        """Let go of what is only waiting to be let go of: garbage, workspaces, work in flight. Not `wholly`: garbage that is
        young, because to collect it all takes longer than most tests."""
        collect(2 if wholly else 1)

    def levels(self) -> list[int]:
        """Bytes allocated now, card by card."""
        return [self._running.allocated()]

    def live(self) -> Pieces:
        """All that is alive."""
        return self._running.pieces()

    def key(self, tensor: Any) -> Hashable | None:
        """What identifies a tensor's memory in `live`; None if it is not on this device."""
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError, ValueError):
            return None
        cdata: int = storage._cdata
        return cdata if storage.device.type == "cpu" and storage.nbytes() else None

    def card_of(self, key: Hashable) -> int:
        """The position in `levels` of the card that a piece is on."""
        return 0

    def begin_peak(self, limit: int | None, crossed: Crossed) -> None:
        """Measure a peak from here on. `crossed` is called soon after the first card has more than `limit` bytes."""
        self._running.begin(limit, crossed)

    def peaks(self) -> list[int]:
        """The most bytes since `begin_peak`, card by card."""
        return [self._running.peak("line")]

    def reserved(self) -> int | None:
        """The most bytes reserved since `begin_peak`; None where nothing is reserved."""
        return None

    def at_peak(self, card: int) -> dict[int, int] | None:
        """What was alive at the card's peak: bytes by site's index. None where it was not recorded."""
        return self._running.composition()

    def end_peak(self) -> None:
        """Measure it no more."""
        self._running.end()

    @property
    def _running(self) -> PeakProbe:
        assert self._probe is not None, "entered first"
        return self._probe


# Allocations and frees of one test's call that are kept to tell what makes its peak
MOST_EVENTS: Final = 500_000

_Block = tuple[int, int]  # size, site


class Gpu:
    """See `gpulint.testing.devices.Cpu`. The cards are those that this process uses."""

    kind = "cuda"

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self._entered = 0
        self._peak: _Peak | None = None

    @property
    def card(self) -> str:
        return str(torch.cuda.get_device_name())

    def enter(self) -> None:
        self._entered += 1
        if self._entered == 1:
            torch.cuda._lazy_call(self._record)  # type: ignore[no-untyped-call]

    def _record(self) -> None:
        if self._entered and self._peak is None:
            _history("state", context="state", stacks="python")

    def leave(self) -> None:
        self._entered -= 1
        if self._entered == 0 and _started():
            _history(None)

    def resume(self) -> None:
        if _started():
            self._record()

    def settle(self, wholly: bool = True) -> None:
        collect(2 if wholly else 1)
        if _started():
            for card in range(torch.cuda.device_count()):
                if _stats(card)["reserved_bytes"]["all"]["current"]:
                    torch.cuda.synchronize(card)
            # Made by the first matrix product of a process or after this: by whichever test that is.
            torch._C._cuda_clearCublasWorkspaces()

    def levels(self) -> list[int]:
        if not _started():
            return [0] * torch.cuda.device_count()
        cards = range(torch.cuda.device_count())
        return [_stats(card)["allocated_bytes"]["all"]["current"] for card in cards]

    def live(self) -> Pieces:
        if not _started():
            return {}
        blocks = self.blocks()
        found = {key: Piece(size, site, None) for key, (size, site) in blocks.items()}
        for one in live_tensors():
            key = self.key(one)
            if key in found and found[key].identity is None:
                found[key] = found[key]._replace(identity=identity(one))
        return found

    def blocks(self) -> dict[Hashable, _Block]:
        """The allocated blocks of all cards: (card, address) -> size and site."""
        return {
            (card, address): (size, self.frames.recorded(stack))
            for card, address, size, stack in allocated_blocks(_segments())
        }

    def key(self, tensor: Any) -> Hashable | None:
        try:
            if not tensor.is_cuda:
                return None
            storage = tensor.untyped_storage()
            pointer = storage.data_ptr()
        except (NotImplementedError, RuntimeError, ValueError):
            return None
        return (tensor.device.index, pointer) if pointer else None

    def card_of(self, key: Hashable) -> int:
        return int(key[0])  # type: ignore[index]

    def begin_peak(self, limit: int | None, crossed: Crossed) -> None:
        self.end_peak()
        self._peak = _Peak(self, limit, crossed)
        self._peak.start()

    def peaks(self) -> list[int]:
        return self._peak.figures("allocated") if self._peak is not None else self.levels()

    def reserved(self) -> int | None:
        return max(self._peak.figures("reserved"), default=None) if self._peak is not None else None

    def at_peak(self, card: int) -> dict[int, int] | None:
        return self._peak.composition(card) if self._peak is not None else None

    def end_peak(self) -> None:
        peak, self._peak = self._peak, None
        if peak is not None:
            peak.stop()
            self.resume()  # not before something has initialized CUDA: a test may fork users of it


class _Peak:
    """One stretch of which the peak is wanted. The program may reset torch's counters meanwhile, for ends of its own: what
    they said before is kept."""

    def __init__(self, gpu: Gpu, limit: int | None, crossed: Crossed) -> None:
        self._gpu = gpu
        self._limit = limit
        self._crossed: Crossed | None = crossed
        self._kept: dict[tuple[str, int], int] = {}
        self._before: dict[Hashable, _Block] = {}
        self._recorded = False
        self._disturbed = False
        self._undo = ExitStack()

    def start(self) -> None:
        torch.cuda._lazy_call(self._begin)  # type: ignore[no-untyped-call]
        # Nothing tells of single allocations: after each module's forward and before each optimizer's step it is looked
        # whether the limit is passed, while who holds the memory can still be found.
        if self._limit is not None:
            self._undo.callback(hooks.modules(after=self._look))
            self._undo.callback(hooks.optimizers(steps=self._look))

    def _begin(self) -> None:
        if self._gpu._peak is not self:
            return
        for card in range(torch.cuda.device_count()):
            torch.cuda.reset_peak_memory_stats(card)
        self._keep_resets()
        self._before = self._gpu.blocks()
        try:
            _history(None)
            _history("all", context="alloc", stacks="python", max_entries=MOST_EVENTS)
            self._recorded = True
        except (RuntimeError, TypeError, AttributeError):  # the lines are not known then
            self._recorded = False
        self._keep_recording()

    def stop(self) -> None:
        self._undo.close()
        self._crossed = None

    def figures(self, what: str) -> list[int]:
        if not _started():
            return [0] * torch.cuda.device_count()
        read = torch.cuda.max_memory_allocated if what == "allocated" else torch.cuda.max_memory_reserved
        # Whoever resets the counters, or takes them back, takes nothing from us
        for card in range(torch.cuda.device_count()):
            self._kept[what, card] = max(read(card), self._kept.get((what, card), 0))
        return [self._kept[what, card] for card in range(torch.cuda.device_count())]

    # -- the limit

    def _look(self, _: Any) -> None:
        if self._crossed is None or self._limit is None or torch.compiler.is_compiling() or not _started():
            return
        level = max(self.figures("allocated"))
        if level > self._limit:
            self._limit = self._crossed(level)

    # -- what the program does with the same counters

    def _keep_resets(self) -> None:
        def resets(device: Any = None) -> None:
            for what in ("allocated", "reserved"):
                self.figures(what)

        for module in (torch.cuda, torch.cuda.memory):
            self._undo.callback(hooks.around(module, "reset_peak_memory_stats", resets))

    def _keep_recording(self) -> None:
        """The watch over steps asks for less than what is recorded here, and a program that records for itself takes over."""

        def made(original: Any) -> Any:
            def _record_memory_history(*args: Any, **kwargs: Any) -> None:
                if not Frames.is_ours(sys._getframe(1).f_code.co_filename):
                    self._disturbed = True
                    original(*args, **kwargs)

            return _record_memory_history

        self._undo.callback(hooks.wrap(torch.cuda.memory, "_record_memory_history", made))

    # -- what makes the peak

    def composition(self, card: int) -> dict[int, int] | None:
        """The blocks alive at the highest point, replayed from what was alive at the beginning."""
        if not self._recorded or self._disturbed:
            return None
        events = _trace(card)
        if len(events) >= MOST_EVENTS:
            return None
        alive = {key[1]: block for key, block in self._before.items() if key[0] == card}  # type: ignore[index]
        base = by_site(alive.values())
        recorded = self._gpu.frames.recorded
        changes = changes_of(events, alive, lambda event: recorded(event.get("frames") or ()))
        crest = highest(base, [change for _, change in changes])
        return None if crest is None else crest.parts


def _trace(card: int) -> list[Any]:
    traces = snapshot()["device_traces"]
    return list(traces[card]) if card < len(traces) else []


def _stats(card: int) -> Any:
    return torch._C._cuda_memoryStats(card)


def _started() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _history(*args: Any, **kwargs: Any) -> None:
    torch.cuda.memory._record_memory_history(*args, **kwargs)


Device = Gpu | Cpu


def choose(asked: str, root: str) -> Device:
    """The device for auto, cuda or cpu; `root` is the folder whose code is the user's."""
    frames = Frames(root)
    frames.foreign = (os.path.dirname(os.path.abspath(torch.__file__)) + os.sep,)
    return Gpu(frames) if asked == "cuda" or (asked == "auto" and has_cuda()) else Cpu(frames)


# Frameworks whose own objects lead to every test and fixture: what a fixture holds is not looked for behind them.
PYTEST: Final = ("_pytest.", "pytest.", "pluggy.", "xdist.", "execnet.")


def told(device: Device) -> str:
    """Where it is measured, as a part of a sentence. Initializes no CUDA: a process that has may not fork users of it."""
    if device.kind == "cpu":
        return "the CPU, as it would be on a GPU"
    return device.card if torch.cuda.is_initialized() else "a GPU that nothing has used"  # type: ignore[no-untyped-call]


def tensors_on(device: Device) -> Pieces:
    """The memory of all tensors that Python's collector knows, without births: needs no recording."""
    found: Pieces = {}
    for one in live_tensors():
        key = device.key(one)
        if key is not None and key not in found:
            found[key] = Piece(one.untyped_storage().nbytes(), 0, identity(one))
    return found


def is_same(one: Piece | None, other: Piece | None) -> bool:
    """Whether two looks, at one address, saw the same piece."""
    if one is None or other is None:
        return False
    if one.identity is not None and other.identity is not None:
        return bool(one.identity is other.identity)
    return (one.size, one.site) == (other.size, other.site)


def holders_of(device: Device, pieces: Mapping[Hashable, Piece], thoroughly: bool = True) -> list[Holder]:
    """Who keeps these pieces, largest first. `thoroughly` looks at everything that there is for those that no variable of the
    user's leads to, which takes a second or more."""
    leaking = frozenset(pieces) if thoroughly else frozenset()
    return holders.find(_blocks(pieces), device.key, range(0), device.frames, leaking=leaking, modules=True)


def reached_from(device: Device, roots: list[Any], pieces: Mapping[Hashable, Piece]) -> set[Hashable]:
    """Which of the pieces these objects keep alive."""
    return holders.reached(roots, _blocks(pieces), device.key, PYTEST)


def _blocks(pieces: Mapping[Hashable, Piece]) -> dict[Hashable, Block]:
    return {key: Block(piece.site, "device", 0, piece.size) for key, piece in pieces.items()}


def place_of(site: Site, root: str) -> str:
    """`forward, src/model.py:12`, the file from `root` where it is below that."""
    if not site.file:
        return "code that no Python line of the project stands for"
    file = os.path.relpath(site.file, root) if site.file.startswith(root + os.sep) else site.file
    return f"{site.function}, {file}:{site.line}"


def births_of(device: Device, pieces: Mapping[Hashable, Piece], root: str) -> list[str]:
    """The lines that pieces were born at, with their bytes, largest first."""
    return by_line(device, by_site((piece.size, piece.site) for piece in pieces.values()), root, most=3)


def by_line(device: Device, totals: Mapping[int, int], root: str, most: int = 5) -> list[str]:
    """Lines with their bytes, largest first; how many more there are, at the end."""
    ranked = sorted(((size, site) for site, size in totals.items() if size > 0), reverse=True)
    born = [(size, f"in {place_of(device.frames.sites[site], root)}") for size, site in ranked[:most]]
    if rest := ranked[most:]:
        born.append((sum(size for size, _ in rest), f"at {plural(len(rest), 'other line')}"))
    return [f"{format_bytes(size)} born {where}" for size, where in born]

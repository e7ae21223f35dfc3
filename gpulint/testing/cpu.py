"""The CPU in a GPU's place: every live tensor storage, rounded as the caching allocator would round it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from gpulint.runtime.observing.calls import collect
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.probes.host import HostProbe


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
        for ref in list(self._table.values()):
            self.crests.add(ref.cell[2] * 4 + ref.place, ref.size)

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
                found[cdata] = Piece(ref.size, ref.cell[2], weakref.ref(storage))
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

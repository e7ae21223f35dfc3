"""The CPU in a GPU's place: every live tensor storage, rounded as the caching allocator would round it."""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Any

from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from gpulint.runtime.observing.calls import collect
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.probes.host import HostProbe
from gpulint.testing.devices import Crossed, Piece, Pieces

_RISE = 1.01  # a peak that is higher by less has the composition of the one before


class PeakProbe(HostProbe):  # type: ignore[no-untyped-call]
    """Knows besides which lines' memory was alive at the highest point, and says when a limit is passed."""

    def __init__(self, frames: Frames) -> None:
        super().__init__(frames, everything=True)
        self._limit: int | None = None
        self._crossed: Crossed | None = None
        self._measuring = False
        self._top = 0
        self._rising = False
        self._composed = 0  # the level that `_composition` is of
        self._composition: dict[int, int] = {}

    def begin(self, limit: int | None, crossed: Crossed) -> None:
        self.begin_peak("line")
        self._limit, self._crossed = limit, crossed
        self._measuring, self._rising = True, True
        self._top, self._composed, self._composition = self.allocated(), 0, {}

    def end(self) -> None:
        self._measuring = False
        self._crossed = None

    def composition(self) -> dict[int, int]:
        """Bytes by site at the highest point."""
        if self._rising:
            self._compose()
        return self._composition

    def _account(self, place: int, size: int) -> None:
        super()._account(place, size)
        if self._measuring and self._live[0] > self._top:
            self._top, self._rising = self._live[0], True

    def _died(self, ref: Any) -> None:
        if self._rising and self._measuring:
            self._compose()
        super()._died(ref)

    def _compose(self) -> None:
        """Just before the level falls: nothing of the highest point has gone yet."""
        self._rising = False
        if self._top < self._composed * _RISE:
            return
        self._composed = self._top
        totals: dict[int, int] = {}
        for cells in self._cells:
            for cell in cells.values():
                totals[cell[2]] = totals.get(cell[2], 0) + cell[0]
        self._composition = totals

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = super().__torch_dispatch__(func, types, args, kwargs)
        if self._limit is not None and self._top > self._limit and self._crossed is not None:
            level, self._limit = self._top, None
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
    """See `gpulint.testing.devices.Device`."""

    kind = "cpu"
    card = "cpu"

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self._probe: PeakProbe | None = None
        self._entered = 0

    def enter(self) -> None:
        self._entered += 1
        if self._entered == 1:
            self._probe = PeakProbe(self.frames)
            self._probe.start()
            self._probe.adopt()

    def leave(self) -> None:
        self._entered -= 1
        if self._entered == 0 and self._probe is not None:
            stack = _get_current_dispatch_mode_stack()
            if stack and stack[-1] is self._probe:
                self._probe.leave()
            else:  # a test has entered a mode and left it open: ours cannot be taken from under it
                self._probe.stop()
            self._probe = None

    def resume(self) -> None:
        """Nobody else can end it."""

    def settle(self, wholly: bool = True) -> None:
        collect(2 if wholly else 1)

    def levels(self) -> list[int]:
        return [self._running.allocated()]

    def live(self) -> Pieces:
        return self._running.pieces()

    def key(self, tensor: Any) -> Hashable | None:
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError, ValueError):
            return None
        cdata: int = storage._cdata
        return cdata if storage.device.type == "cpu" and storage.nbytes() else None

    def card_of(self, key: Hashable) -> int:
        return 0

    def begin_peak(self, limit: int | None, crossed: Crossed) -> None:
        self._running.begin(limit, crossed)

    def peaks(self) -> list[int]:
        return [self._running.peak("line")]

    def reserved(self) -> int | None:
        return None

    def at_peak(self, card: int) -> dict[int, int] | None:
        return self._running.composition()

    def end_peak(self) -> None:
        self._running.end()

    @property
    def _running(self) -> PeakProbe:
        assert self._probe is not None, "entered first"
        return self._probe

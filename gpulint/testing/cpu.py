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

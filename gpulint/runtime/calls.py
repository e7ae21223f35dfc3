"""Times the calls that cost time rather than memory: cleanup and synchronization, per calling line."""

from __future__ import annotations

import functools
import gc
import sys
import time
from collections.abc import Callable
from typing import Any

from gpulint.runtime.frames import Frames
from gpulint.runtime.result import CallFigures

collect = gc.collect  # the original, for our own use


class Calls:
    """Wraps functions in place and counts what they cost. `sampling` is set once warm-up is over."""

    def __init__(self, frames: Frames, reserved: Callable[[], int | None]) -> None:
        self.sampling = False
        self._frames = frames
        self._reserved = reserved
        self._cells: dict[tuple[str, int], list[float]] = {}  # count, sampled, seconds, released
        self._undo: list[Callable[[], None]] = []

    def watch_collector(self) -> None:
        """Time gc.collect()."""
        self._wrap(gc, "collect", "gc.collect")

    def watch_torch(self, torch: Any) -> None:
        """Time torch's cleanup and synchronizing calls."""
        self._wrap(torch.cuda, "empty_cache", "torch.cuda.empty_cache")
        self._wrap(torch.cuda, "synchronize", "torch.cuda.synchronize")
        for name in ("item", "tolist", "cpu"):
            self._wrap(torch.Tensor, name, f"Tensor.{name}")

    def _wrap(self, owner: Any, name: str, what: str) -> None:
        original = getattr(owner, name)
        inherited = name not in vars(owner)
        frames, cells, clock = self._frames, self._cells, time.perf_counter
        direct = what.startswith("Tensor.")
        weighs = what == "torch.cuda.empty_cache"

        @functools.wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            if direct and not frames.is_user(caller.f_code.co_filename):
                return original(*args, **kwargs)  # torch's own use of it, inside an optimizer, say
            before = self._reserved() if weighs else None
            begin = clock()
            try:
                return original(*args, **kwargs)
            finally:
                took = clock() - begin
                released = before - (self._reserved() or 0) if before is not None else 0
                self._count(cells.setdefault((what, frames.index(caller)), [0, 0, 0.0, 0]), took, released)

        setattr(owner, name, timed)
        if inherited:
            self._undo.append(lambda: delattr(owner, name))
        else:
            self._undo.append(lambda: setattr(owner, name, original))

    def _count(self, cell: list[float], took: float, released: int) -> None:
        cell[0] += 1
        if self.sampling:
            cell[1] += 1
            cell[2] += took
            cell[3] += released

    def stop(self) -> None:
        """Put the originals back."""
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def figures(self) -> list[CallFigures]:
        """What was counted, by calls from the user's code; the most expensive first."""
        has_reserved = self._reserved() is not None
        found = [
            CallFigures(
                what,
                self._frames.sites[site],
                int(count),
                int(sampled),
                seconds,
                int(released) if has_reserved and what == "torch.cuda.empty_cache" else None,
            )
            for (what, site), (count, sampled, seconds, released) in self._cells.items()
            if site
        ]
        return sorted(found, key=lambda call: (-call.seconds, call.what, call.site.line))

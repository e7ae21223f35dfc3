"""Times the calls that cost time rather than memory: cleanup and synchronization, per calling line. Counts how often Python's
collector comes by itself, and what it frees on the device."""

from __future__ import annotations

import functools
import gc
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import CodeType
from typing import Any

from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record.besides import Collections
from gpulint.runtime.record.result import CallFigures

_GIVEN_BACK = {"torch.cuda.empty_cache": "released", "gc.collect": "freed"}  # the figure that says it
collect = gc.collect  # the original, for our own use


Weigh = Callable[[], int | None]  # reads a figure, in bytes, where there is one


class Calls:
    """Wraps functions in place and counts what they cost. `sampling` is set once warm-up is over."""

    def __init__(self, frames: Frames, reserved: Weigh, allocated: Weigh = lambda: None) -> None:
        self.sampling = False
        self._frames = frames
        self._weighed = {"torch.cuda.empty_cache": reserved, "gc.collect": allocated}
        # Count, sampled, seconds, and what was given back
        self._cells: dict[tuple[str, int], list[float]] = {}
        self._undo = ExitStack()

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
        self._undo.callback(hooks.wrap(owner, name, functools.partial(self._timed, what)))

    def _timed(self, what: str, original: Any) -> Callable[..., Any]:
        """Counted for the user's line behind the call, whoever calls; a tensor's method where the user's code itself calls, and not
        torch in an optimizer, say. Loops over tensors call thousands of times: each place is looked up once, and timed only while
        steps are sampled."""
        frames, cells, clock = self._frames, self._cells, time.perf_counter
        weigh, direct = self._weighed.get(what, lambda: None), what.startswith("Tensor.")
        # The code is kept: ids are used again
        places: dict[tuple[int, int], tuple[CodeType, list[float] | None]] = {}

        def timed(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            code = caller.f_code
            known = places.get((id(code), caller.f_lasti)) if direct else None
            if known is None:
                counts = not direct or frames.is_user(code.co_filename)
                cell = cells.setdefault((what, frames.index(caller)), [0, 0, 0.0, 0]) if counts else None
                known = places[id(code), caller.f_lasti] = (code, cell)
            cell = known[1]
            if cell is None:
                return original(*args, **kwargs)
            cell[0] += 1
            if not self.sampling:
                return original(*args, **kwargs)
            before, begin = weigh(), clock()
            try:
                return original(*args, **kwargs)
            finally:
                cell[1] += 1
                cell[2] += clock() - begin
                cell[3] += before - (weigh() or 0) if before is not None else 0

        return timed

    def stop(self) -> None:
        """Put the originals back."""
        self._undo.close()

    def figures(self) -> list[CallFigures]:
        """What was counted, by calls from the user's code; the most expensive first."""
        known = {what for what, weigh in self._weighed.items() if weigh() is not None}
        found = []
        for (what, site), (count, sampled, seconds, given_back) in self._cells.items():
            if site:
                amounts = {_GIVEN_BACK[what]: int(given_back)} if what in known else {}
                where = self._frames.sites[site]
                found.append(CallFigures(what, where, int(count), int(sampled), seconds, **amounts))
        return sorted(found, key=lambda call: (-call.seconds, call.what, call.site.line))


class Collector:
    """Counts while `counting()` says so. `allocated` reads the probe."""

    def __init__(self, counting: Callable[[], bool], allocated: Weigh) -> None:
        self._counting = counting
        self._allocated = allocated
        self._came = [0, 0]
        self._freed = 0
        self._before: int | None = None

    def start(self) -> None:
        gc.callbacks.append(self._told)

    def stop(self) -> None:
        """Count no more."""
        if self._told in gc.callbacks:
            gc.callbacks.remove(self._told)

    def figures(self) -> Collections:
        """What was counted so far."""
        partial, full = self._came
        return Collections(partial, full, self._freed, not gc.isenabled())

    def _told(self, phase: str, info: dict[str, Any]) -> None:
        generation = min(int(info["generation"]), 2)
        if generation == 0:  # hundreds of times a second: what it finds is small, and counted with the next
            return
        if phase == "start":
            self._before = self._allocated() if self._counting() else None
        elif self._before is not None:
            self._came[generation - 1] += 1
            self._freed += max(0, self._before - (self._allocated() or 0))
            self._before = None

"""Times the calls that cost time rather than memory: cleanup and synchronization, per calling line."""

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
from gpulint.runtime.record.result import CallFigures

collect = gc.collect  # the original, for our own use


class Calls:
    """Wraps functions in place and counts what they cost. `sampling` is set once warm-up is over."""

    def __init__(
        self,
        frames: Frames,
        reserved: Callable[[], int | None],
        allocated: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.sampling = False
        self._frames = frames
        self._weighed = {"torch.cuda.empty_cache": reserved, "gc.collect": allocated}
        self._cells: dict[
            tuple[str, int], list[float]
        ] = {}  # count, sampled, seconds, and what was given back
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
        timed = self._direct if what.startswith("Tensor.") else self._timed
        self._undo.callback(hooks.wrap(owner, name, functools.partial(timed, what)))

    def _timed(self, what: str, original: Any) -> Callable[..., Any]:
        """Counted for the user's line behind the call, whoever calls."""
        frames, cells, clock = self._frames, self._cells, time.perf_counter
        weigh = self._weighed.get(what, _nothing)

        def timed(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            before = weigh()
            begin = clock()
            try:
                return original(*args, **kwargs)
            finally:
                took = clock() - begin
                given_back = before - (weigh() or 0) if before is not None else 0
                self._count(cells.setdefault((what, frames.index(caller)), [0, 0, 0.0, 0]), took, given_back)

        return timed

    def _direct(self, what: str, original: Any) -> Callable[..., Any]:
        """Counted where the user's code itself calls, and not torch in an optimizer, say. Loops over tensors call
        thousands of times: each place is looked up once, and timed only while steps are sampled."""
        frames, cells, clock = self._frames, self._cells, time.perf_counter
        places: dict[
            tuple[int, int], tuple[CodeType, list[float] | None]
        ] = {}  # the code is kept: ids are used again

        def timed(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            code = caller.f_code
            known = places.get((id(code), caller.f_lasti))
            if known is None:
                users = frames.is_user(code.co_filename)
                cell = cells.setdefault((what, frames.index(caller)), [0, 0, 0.0, 0]) if users else None
                known = places[id(code), caller.f_lasti] = (code, cell)
            cell = known[1]
            if cell is None:
                return original(*args, **kwargs)
            if not self.sampling:
                cell[0] += 1
                return original(*args, **kwargs)
            begin = clock()
            try:
                return original(*args, **kwargs)
            finally:
                self._count(cell, clock() - begin, 0)

        return timed

    def _count(self, cell: list[float], took: float, given_back: int) -> None:
        cell[0] += 1
        if self.sampling:
            cell[1] += 1
            cell[2] += took
            cell[3] += given_back

    def stop(self) -> None:
        """Put the originals back."""
        self._undo.close()

    def figures(self) -> list[CallFigures]:
        """What was counted, by calls from the user's code; the most expensive first."""
        known = {what: weigh() is not None for what, weigh in self._weighed.items()}
        found = [
            CallFigures(
                what,
                self._frames.sites[site],
                int(count),
                int(sampled),
                seconds,
                int(given_back) if what == "torch.cuda.empty_cache" and known[what] else None,
                int(given_back) if what == "gc.collect" and known[what] else None,
            )
            for (what, site), (count, sampled, seconds, given_back) in self._cells.items()
            if site
        ]
        return sorted(found, key=lambda call: (-call.seconds, call.what, call.site.line))


def _nothing() -> None:
    return None

"""How often Python's collector comes by itself, and what it frees on the device."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from gpulint.runtime.record.besides import Collections


class Collector:
    """Counts while `counting()` says so. `allocated` reads the probe."""

    def __init__(self, counting: Callable[[], bool], allocated: Callable[[], int | None]) -> None:
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
        return Collections(partial, full, self._freed)

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

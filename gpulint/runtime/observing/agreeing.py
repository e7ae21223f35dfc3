"""Ranks that train together stop after the same step: one that had gone would leave the others waiting for its gradients."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

# What stands in the store
SAMPLED, CONTENT, CHOSEN, LAST = (f"gpulint/{name}" for name in ("sampled", "content", "chosen", "last"))
AHEAD = 2  # steps; nobody is further than one ahead of another, whose gradients it needs


class Agreement:
    """One rank's part in it, by way of the process group's store, which costs no collective call. `world_size` says how many
    ranks there are.

    They stop once each has sampled its steps and one has seen what it went on for: lines that only the first rank runs are not
    waited for by all.
    """

    def __init__(self, world_size: Callable[[], int]) -> None:
        self._world_size = world_size
        self._steps = 0
        self._said: set[str] = set()
        self._last: int | None = None

    def after_step(self, sampled: bool, content: bool) -> bool:
        """Whether this step of training was the last. `sampled`: this rank has what it needs; `content`: it would stop here."""
        self._steps += 1
        if not sampled and not content:
            return False
        store = _store()
        if store is None:
            return content
        with contextlib.suppress(RuntimeError, ValueError, OSError):
            return self._agreed(store, content)
        return content

    def _agreed(self, store: Any, content: bool) -> bool:
        self._say(store, SAMPLED)
        if content:
            self._say(store, CONTENT)
        if self._last is None and store.check([LAST]):
            self._last = int(store.get(LAST))
        everybody = store.add(SAMPLED, 0) >= self._world_size() and store.add(CONTENT, 0) > 0
        if self._last is None and everybody and store.add(CHOSEN, 1) == 1:
            self._last = self._steps + AHEAD
            store.set(LAST, str(self._last))
        return self._last is not None and self._steps >= self._last

    def _say(self, store: Any, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            store.add(what, 1)


def _store() -> Any:
    """The store of the script's process group; None where there is none."""
    distributed = sys.modules.get("torch.distributed.distributed_c10d")
    if distributed is None or not distributed.is_initialized():
        return None
    return distributed._get_default_store()

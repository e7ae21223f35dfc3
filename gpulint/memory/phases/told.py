"""Whoever is told of a run's phases: what hooks and callbacks ask of a `Monitor`."""

from __future__ import annotations

import os
from typing import Any, Protocol


class Told(Protocol):
    """`Monitor`, as far as those that tell it need it."""

    def milestone(self, name: str, detail: str = "") -> Any: ...

    def model(self, model: Any = None) -> Any: ...

    def optimizer(self, optimizer: Any = None) -> Any: ...

    def step(self) -> Any: ...

    def epoch(self, number: int | None = None) -> Any: ...

    def validation(self, detail: str = "") -> Any: ...

    def checkpoint(self, path: str | os.PathLike[str] | None = None) -> Any: ...

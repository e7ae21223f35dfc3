"""A stand-in for fire: the function with its defaults."""

from __future__ import annotations

from collections.abc import Callable


def Fire(function: Callable[[], object]) -> None:
    function()

"""A stand-in for matplotlib that draws nothing."""

from __future__ import annotations

from typing import Any


def use(*_: Any, **__: Any) -> None:
    """Any backend will do."""

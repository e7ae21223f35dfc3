"""`gpulint.step()`: tells the verifier where one iteration ends. Does nothing, at no cost, in any other
run."""

from __future__ import annotations

from collections.abc import Callable

_listener: Callable[[], None] | None = None


def step() -> None:
    """Mark the end of one iteration.

    Call it once per iteration of a loop that has neither an optimizer nor a module's forward. From the first
    call on, these marks alone bound the verifier's steps.
    """
    if _listener is not None:
        _listener()

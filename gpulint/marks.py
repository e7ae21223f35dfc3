"""`gpulint.step()` and `gpulint.window()`: tell the verifier where one iteration ends, and what comes again and again. Do nothing,
at no cost, in any other run."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_listener: Callable[[], None] | None = None
_windows: Callable[[str, bool], None] | None = None


def step() -> None:
    """Mark the end of one iteration.

    Call it once per iteration of a loop that has neither an optimizer nor a module's forward. From the first
    call on, these marks alone bound the verifier's steps.
    """
    if _listener is not None:
        _listener()


class window:
    """A stretch that comes again and again: a trial, a request, an epoch.

        for request in requests:
            with gpulint.window("request"):
                serve(request)

    What was made in one and outlives the next is told as growth of that window: "1.0 MiB a request".
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        if _windows is not None:
            _windows(self._name, True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if _windows is not None and kind is None:
            _windows(self._name, False)

"""How far the questions about one file go: what they go through is counted, what they find is kept.

A question goes on from a function to those that call it, or that it calls, and so on. Where the same is asked again the answer
is kept, so that the work grows with the file. Below that is a net: a file made for it could still ask without end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial, wraps
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, Protocol, TypeVar, cast

from gpulint.answers import LookedNoFurther

if TYPE_CHECKING:
    from gpulint.analysis.code import ir

T = TypeVar("T")
P = ParamSpec("P")


class Counted(Protocol):
    """A file, or who asks about one."""

    @property
    def effort(self) -> Effort: ...


F = TypeVar("F", bound=Counted)

# Statements of callers and callees that are gone through: counted, so that the same file always gives the same findings.
# Of the programs in `tests/cases` and of public ones none comes near (`tests/hostile/test_effort.py` holds the first to it).
FOR_A_FUNCTION: Final = 50_000
FOR_A_FILE: Final = 200_000


class Effort:
    """What has been gone through for the file that is linted, in whichever files, and what was found.

    While the functions are still followed, answers change: nothing is kept before `settle`, and nothing counted.
    """

    def __init__(self) -> None:
        self.spent = 0
        self.function: ir.Function | None = None  # that is looked at
        self._before = 0  # spent when that began
        self._kept: dict[Hashable, object] | None = None

    def settle(self) -> None:
        """All that questions rest on is known now."""
        self._kept = {}

    def begin(self, function: ir.Function | None = None) -> None:
        """What follows is about another function; None: about the whole file."""
        self.function = function
        self._before = self.spent

    def draw(self, statements: int) -> None:
        """Count what is gone through. Raises `LookedNoFurther` where that is too much, for the function or for the file."""
        if self._kept is not None:
            if self.spent < FOR_A_FILE:
                self.spent += statements
            if self.spent >= FOR_A_FILE or self.spent - self._before > FOR_A_FUNCTION:
                raise LookedNoFurther

    def once(self, key: Hashable, answer: Callable[[], T]) -> T:
        """What `answer` gives, which for one key is always the same."""
        if self._kept is None:
            return answer()
        if key not in self._kept:
            self._kept[key] = answer()
        return cast(T, self._kept[key])


def kept(question: Callable[Concatenate[F, P], T]) -> Callable[Concatenate[F, P], T]:
    """A question that goes on through functions, asked once for the same arguments while one file is linted."""

    @wraps(question)
    def asked(file: F, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return file.effort.once((question, file, *args), partial(question, file, *args, **kwargs))

    return cast("Callable[Concatenate[F, P], T]", asked)

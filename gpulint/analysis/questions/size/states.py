"""Whether a checkpoint, or a copy of a network's weights, is much beside what a training takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gpulint.analysis.questions.size.networks import SMALL, NetworkSizes
from gpulint.answers import Answer, Question, unweighed

if TYPE_CHECKING:
    from gpulint.analysis.code import ir
    from gpulint.analysis.file.program import FileAnalysis


def held_doubts(
    ask: Callable[[Callable[[FileAnalysis], Any]], Any], function: ir.Function, name: str
) -> Iterator[Answer]:
    """What leaves it open whether what a name holds is much: a network is known to be, anything else may be."""
    size = ask(NetworkSizes).of(function, name)
    if size is None or size.most.about < SMALL:
        yield unweighed(Question.SIZE, f"how large what `{name}` holds is, the code does not say")

"""A value that something keeps, or gives to whoever may keep it, and what the claim about it stands on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.traced import PROVEN, REFUTED, Traced

from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.rules.detect.kept.graphs import Graphs

    from gpulint.analysis.code import ir


class How(str, Enum):
    """In what way it stays."""

    SUMMED = "adds up"
    LISTED = "keeps"
    ENTRY = "is given"  # a dict of statistics, one entry of which is left attached
    RETURNED = "returns"
    STORED = "stores"
    CACHED = "caches"
    AVERAGED = "takes in"


@dataclass(frozen=True, slots=True)
class Kept:
    """`value` stays in `holder`, or is given to the callers of `holder`. `freed`: a backward goes through its graph where it is
    made, so that its buffers are free."""

    function: ir.Function
    at: ir.Expr | ir.Stmt
    value: ir.Expr
    holder: str
    how: How
    answers: tuple[Answer, ...]
    freed: bool = False
    scalar: bool = False
    others: tuple[ir.Expr, ...] = ()  # more of the same cause, in the same display


def about(traced: Traced, at: ir.Part) -> Iterator[Answer]:
    """The answers about the value itself: is it a tensor, has it a graph. One unknown is one doubt."""
    if traced.graph is REFUTED or traced.tensor is REFUTED:
        yield refuted(Question.GRAPH if traced.tensor is not REFUTED else Question.TENSOR, traced.why, at)
    elif traced.graph is PROVEN:
        yield proven(Question.GRAPH, traced.why, at)
    else:
        if traced.tensor is PROVEN:
            yield proven(Question.TENSOR, "it is computed as a tensor", at)
        else:
            yield left_open(Question.TENSOR, "that it is a tensor is not shown", at)
        yield left_open(Question.GRAPH, traced.why, at)


def called_with_grad(graphs: Graphs) -> Iterator[Answer]:
    """Whether those who call the method may do so with grad off."""
    mode = graphs.grad_at(graphs.function.body[0])
    if mode is Grad.DISABLED:
        yield refuted(Question.GRAD, "grad is off there")
    elif mode is Grad.UNKNOWN or not graphs.file.callers.get(graphs.function):
        yield left_open(Question.GRAD, f"who calls `{graphs.function.name}` may switch grad off")

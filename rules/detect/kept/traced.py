"""What is known of one value: whether it is a tensor, whether it has a graph, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpulint.analysis.values.values import MAYBE, MIXED, UNSURE_GRAD, Kind, Val, held_parts
from gpulint.answers import Verdict

PROVEN, OPEN, REFUTED = Verdict.PROVEN, Verdict.OPEN, Verdict.REFUTED


@dataclass(frozen=True, slots=True)
class Traced:
    """What is known of a value: is it a tensor, or made of tensors; has it a graph, and why. `freed`: a backward in the
    function goes through it. `given`: the parameter that decides about it. `scalar`: backward was called on it, or a loss
    function or a reduction made it."""

    tensor: Verdict
    graph: Verdict
    why: str
    freed: bool = False
    given: str = ""
    scalar: bool = False
    cut: bool = False  # it was a tensor with a graph, and somebody took care that it is none any more


NUMBER = Traced(REFUTED, REFUTED, "it is a number, or text")
UNKNOWN = Traced(OPEN, OPEN, "what makes it is not seen")
NO_GRAPH_MADE = Traced(PROVEN, REFUTED, "grad is off where it is made")


def made_without(why: str) -> Traced:
    return Traced(PROVEN, REFUTED, why)


def joined(found: Iterable[Traced]) -> Traced:
    """What is made of several: a graph, where one has it."""
    parts = list(found)
    if not parts:
        return NUMBER
    best = max(parts, key=_weight)
    return replace(best, scalar=all(part.scalar or part.tensor is REFUTED for part in parts) and best.scalar)


def _weight(one: Traced) -> tuple[int, int]:
    order = {REFUTED: 0, OPEN: 1, PROVEN: 2}
    return order[one.graph], order[one.tensor]


def of_value(value: Val) -> Traced | None:
    """What the flow of values knows, in these terms; None where it knows nothing."""
    if value.kind is Kind.CONTAINER:
        inside = [found for part in held_parts(value) if (found := of_value(part)) is not None]
        return joined(inside) if inside else None
    if value.kind in (Kind.HOST, Kind.NUMBER):
        return replace(NUMBER, cut=value.kind is Kind.HOST)
    if value.kind is Kind.DEVICE:
        return made_without("it has no graph")
    if value.kind is Kind.GRAPH:
        unsure = value.has(MAYBE) or value.has(MIXED) or value.has(UNSURE_GRAD)
        made = any(site.what in ("forward", "loss") for site in value.sites)
        if unsure or not made:
            return Traced(
                PROVEN if not value.has(MAYBE) else OPEN, OPEN, "not all that it may be has a graph"
            )
        return Traced(PROVEN, PROVEN, "a network or a loss makes it with grad enabled")
    return None

"""Helpers followed once more with what a caller gives them, where a summary says too little of what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gpulint.analysis.code import ir
from gpulint.analysis.values.values import LARGE, Grad, Kind, ParamToken, Val, held_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpulint.analysis.file.summaries import Summary
    from gpulint.analysis.values.state import State


class Follower(Protocol):
    """One function about to be followed."""

    given: dict[str, Val]
    summary: Summary

    def run(self) -> State:
        """Follow it to its end."""


def with_given(
    function: ir.Function,
    summary: Summary,
    given: dict[str, Val],
    anew: Callable[[ir.Function, Grad], Follower],
) -> Val | None:
    """What a helper returns under no_grad for an output and something unknown: `mean_pooling(output, mask)`. A summary
    only knows that both went into it. `anew` begins to follow a function under a grad mode."""
    returns, home = summary.returns, function.home
    if returns is None or returns.kind not in (Kind.SYMBOL, Kind.DEVICE) or summary.runs:
        return None
    if function in home.running:
        return None
    tokens = returns.tokens
    names = {token.name for token in tokens if isinstance(token, ParamToken) and token.function is function}
    if returns.kind is Kind.DEVICE:
        names = set(given)
    values = [given[name] for name in names if name in given]
    parts = [part for value in values for part in held_parts(value)]
    if len(values) < 2 or any(part.kind is Kind.GRAPH for part in parts):
        return None
    if not any(part.kind is Kind.DEVICE and part.has(LARGE) for part in parts):
        return None
    if home.evidence[function].has_loop or len(home.running) > 8:
        return None
    flow = anew(function, Grad.DISABLED)
    flow.given = given
    home.running.add(function)
    flow.run()
    home.running.discard(function)
    found = flow.summary.returns
    return found if found is not None and found.kind is Kind.DEVICE else None

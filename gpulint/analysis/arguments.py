"""The evaluated arguments of a call, and small questions about values and arguments."""

from __future__ import annotations

from dataclasses import dataclass

from gpulint.analysis import ir
from gpulint.analysis.values import (
    NO_TOKENS,
    UNKNOWN,
    Kind,
    Tokens,
    Val,
    join,
)


@dataclass(slots=True)
class Args:
    """Evaluated arguments of a call."""

    positional: list[Val]
    keywords: dict[str, Val]

    def all(self) -> list[Val]:
        return [*self.positional, *self.keywords.values()]

    def first(self) -> Val:
        return self.positional[0] if self.positional else next(iter(self.keywords.values()), UNKNOWN)

    def tokens(self) -> Tokens:
        merged: Tokens = NO_TOKENS
        for value in self.all():
            merged |= value.tokens
        return merged

    def any_graph(self) -> bool:
        return any(graphs(value) for value in self.all())


def graphs(value: Val) -> bool:
    if value.kind is Kind.GRAPH:
        return True
    return value.kind is Kind.CONTAINER and value.elem is not None and graphs(value.elem)


def weak_join(a: Val, b: Val) -> Val:
    """What a list holds after one more append: graphs stay graphs beside numbers."""
    if a.kind is Kind.NUMBER or b.kind is Kind.NUMBER or a.kind is b.kind:
        return join(a, b)
    return join(a, b).with_tokens(a.tokens | b.tokens)


def is_true(expr: ir.Expr | None) -> bool:
    return expr is not None and not (isinstance(expr, ir.Const) and not expr.value)


def is_unreduced(call: ir.Call) -> bool:
    reduction = call.keyword("reduction")
    return isinstance(reduction, ir.Const) and reduction.value == "none"

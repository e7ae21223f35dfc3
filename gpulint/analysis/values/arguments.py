"""The evaluated arguments of a call, and small questions about values and arguments."""

from __future__ import annotations

from dataclasses import dataclass

from gpulint.analysis.code import ir
from gpulint.analysis.values.values import (
    NO_TOKENS,
    UNKNOWN,
    Kind,
    Tokens,
    Val,
    container,
    element,
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


def bind_arguments(function: ir.Function, args: Args, owner: Val | None) -> dict[str, Val]:
    """Arguments by the name of the parameter they go to; `owner` is the method's self."""
    positional = list(args.positional)
    if owner is not None and not is_static(function):
        positional.insert(0, owner)
    given: dict[str, Val] = {}
    names = [param.name for param in function.params if param.kind == "normal"]
    for name, value in zip(names, positional, strict=False):
        given[name] = value
    rest = positional[len(names) :]
    for param in function.params:
        if param.kind == "star" and rest:
            given[param.name] = container(items=tuple(rest))
    known = {param.name for param in function.params}
    extra: dict[str, Val] = {}
    for name, value in args.keywords.items():
        if name in known:
            given[name] = value
        else:
            extra[name] = element(value) if name.startswith("**") else value
    for param in function.params:
        if param.kind == "doublestar" and extra:
            given[param.name] = container(items=tuple(extra.values()), keys=tuple(extra))
    return given


def bind_sources(function: ir.Function, call: ir.Call, is_method: bool) -> dict[str, ir.Expr]:
    """The argument expressions by parameter name."""
    names = [param.name for param in function.params if param.kind == "normal"]
    if is_method and not is_static(function):
        names = names[1:]
    sources = dict(zip(names, call.args, strict=False))
    for name, value in call.keywords:
        if name is not None:
            sources[name] = value
    return sources


def is_static(function: ir.Function) -> bool:
    return any(isinstance(item, ir.Name) and item.id == "staticmethod" for item in function.decorators)

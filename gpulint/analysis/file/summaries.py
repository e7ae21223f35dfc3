"""What a function does for its callers: what it returns, which arguments it keeps, frees, and under which grad mode it yields."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gpulint.analysis.code import ir
from gpulint.analysis.file.facts import (
    Backward,
    Carried,
    Forward,
    FunctionFacts,
    Hold,
    Keep,
    OomHandler,
)
from gpulint.analysis.values.values import (
    NO_TOKENS,
    OPEN,
    UNSURE_GRAD,
    Detached,
    Grad,
    Kind,
    ParamToken,
    Site,
    Tokens,
    Val,
    container,
    detached,
    join,
)


@dataclass(slots=True)
class Summary:
    """`forwards`, `steps` and `direct_backwards` count what a call does outside loops; `backwards` counts all."""

    returns: Val | None = None
    keeps: list[Keep] = field(default_factory=list)
    frees: set[str] = field(default_factory=set)
    freed: Tokens = NO_TOKENS
    forwards: int = 0
    runs: bool = False  # a forward at all, also in a loop of its own
    backwards: int = 0
    direct_backwards: int = 0
    steps: int = 0
    autograd_grad: bool = False
    yield_grad: Grad | None = None
    grad_in_training: str = (
        ""  # "self.net" or a parameter: grad is on where this network is in training mode, and only there
    )
    forward_paths: set[str] = field(default_factory=set)  # "self.net" or a parameter, run with grad enabled
    settled: set[str] = field(default_factory=set)  # parameters that it asserts to be networks in eval mode
    stores: set[str] = field(default_factory=set)
    escaped_params: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Events:
    """What the recording pass saw, by node, so that a loop's last pass has the last word."""

    forwards: dict[int, Forward] = field(default_factory=dict)
    backwards: dict[int, Backward] = field(default_factory=dict)
    carried: dict[int, Carried] = field(default_factory=dict)
    handlers: dict[int, OomHandler] = field(default_factory=dict)
    holds: dict[tuple[int, str], Hold] = field(default_factory=dict)

    def into(self, facts: FunctionFacts) -> None:
        facts.forwards = list(self.forwards.values())
        facts.backwards = list(self.backwards.values())
        facts.carried = list(self.carried.values())
        facts.handlers = list(self.handlers.values())
        facts.holds = list(self.holds.values())


def _graph_among(value: Val, given: dict[str, Val], function: ir.Function) -> Val | None:
    """Of several arguments that went into one tensor, one with a graph: then the tensor has one."""
    parts = [
        given[token.name]
        for token in value.tokens
        if isinstance(token, ParamToken) and token.function is function and token.name in given
    ]
    if len(parts) < 2:
        return None
    for part in parts:
        inner = part.elem if part.kind is Kind.CONTAINER and part.elem is not None else part
        if inner.kind is Kind.GRAPH:
            return inner
    return None


def retokened(value: Val, old: frozenset[Site], new: Site) -> Val:
    """The value with `new` where it had any of `old`."""
    if value.kind is Kind.CONTAINER:
        items = None if value.items is None else tuple(retokened(item, old, new) for item in value.items)
        elem = None if value.elem is None else retokened(value.elem, old, new)
        tokens = (value.tokens - old) | {new} if value.tokens & old else value.tokens
        return replace(container(elem, items, value.flags, value.ref), tokens=tokens)
    if not value.tokens & old:
        return value
    return replace(value, tokens=(value.tokens - old) | {new})


def _uncut(value: Val, given: dict[str, Val], function: ir.Function) -> Val:
    """A detached parameter in the caller's terms: the argument without its graph."""
    for token in value.tokens if len(value.tokens) == 1 else ():
        if isinstance(token, Detached) and token.param.function is function:
            argument = given.get(token.param.name)
            if argument is not None and argument.kind in (Kind.GRAPH, Kind.DEVICE, Kind.HOST, Kind.SYMBOL):
                return detached(argument)
    return Val(Kind.DEVICE, flags=value.flags)


def substitute(value: Val, given: dict[str, Val], function: ir.Function) -> Val:
    """A summary's value in the caller's terms: parameters become arguments."""
    if value.kind is Kind.CONTAINER:
        items = (
            None if value.items is None else tuple(substitute(item, given, function) for item in value.items)
        )
        elem = None if value.elem is None else substitute(value.elem, given, function)
        return container(elem, items, value.flags, value.ref)
    tokens: set[object] = set()
    mapped: Val | None = None
    for token in value.tokens:
        if isinstance(token, ParamToken):
            if token.function is function and token.name in given:
                argument = given[token.name]
                tokens |= argument.tokens
                mapped = argument if mapped is None else join(mapped, argument)
        else:
            tokens.add(token)
    merged: Tokens = frozenset(tokens)
    if value.kind is Kind.DEVICE and value.tokens:
        return _uncut(value, given, function)
    if value.kind is Kind.SYMBOL:
        if mapped is None:
            return Val(Kind.UNKNOWN, merged)
        graph = _graph_among(value, given, function)
        if graph is not None:
            return Val(Kind.GRAPH, merged, (value.flags & ~OPEN) | (graph.flags & UNSURE_GRAD))
        if value.has(OPEN) and mapped.kind is Kind.DEVICE:  # computed with what may have a graph of its own
            return Val(Kind.UNKNOWN, merged)
        return mapped.with_tokens(merged)
    return Val(value.kind, merged, value.flags, ref=value.ref)

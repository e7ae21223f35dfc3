"""The value lattice: what a name stands for, as far as the code proves it.

A value with an autograd graph carries *tokens*: the forward or loss calls whose graph stands behind it. `backward()`
through any value frees the tokens of all of it, so whether a held value pins activations is a question about tokens,
not about names. Holders and parameters are tokens too: that is how "what was accumulated is consumed by a backward
after the loop" and "this function keeps its second argument" are found with the same propagation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto, unique
from enum import Flag as Flags
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from gpulint.analysis.code import ir


_MOST_ITEMS = 8  # of tuples of different lengths; what grows from round to round ends there


class Kind(Enum):
    UNKNOWN = "unknown"
    NUMBER = "number"  # a literal number, None, an empty start of a sum
    HOST = "host"  # a Python number, string, numpy array: holds nothing
    DEVICE = "device"  # a tensor without a graph
    GRAPH = "graph"  # a tensor, or an object of tensors, with a graph
    SYMBOL = "symbol"  # a parameter, or tensor arithmetic on parameters
    MODULE = "module"
    OPTIMIZER = "optimizer"
    LOADER = "loader"
    CONTAINER = "container"
    FUNCTION = "function"
    CLASS = "class"
    INSTANCE = "instance"
    QUALIFIED = "qualified"  # an imported name
    CONTEXT = "context"  # a context manager whose effect on grad mode is known
    DISTRIBUTION = "distribution"

    __hash__ = (
        object.__hash__
    )  # members are looked up in sets all the time; an Enum's own hash is a Python function


class Grad(Enum):
    """Whether autograd records at a statement."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    UNKNOWN = "unknown"


@unique
class Flag(Flags):
    """What is known of a value besides its kind. Numbered by the enum, so that no two can share a bit."""

    MAYBE = auto()  # a tensor with a graph is likely, not proven: it could be a number
    SCALAR = auto()  # backward() without arguments was called on it, or a criterion made it
    LARGE = auto()  # a model's output, or elementwise work on it
    CONVERTED = auto()  # a number that was a tensor before: .item(), float()
    BOUNDED = auto()  # a container that drops old entries
    VIEW = auto()  # indexing of a tensor: shares its storage
    LOSS = auto()  # a criterion's result
    EVAL = auto()  # a module after .eval()
    FROZEN = auto()  # a module whose parameters do not require grad
    CRITERION = auto()  # a module or callable that computes a loss
    OUTPUT = auto()  # the raw, possibly structured, result of a module call
    PHASED = auto()  # a module in training or in eval mode, by what a variable says
    MIXED = auto()  # detached on one path, not on another: the author knows
    ROLE = auto()  # taken for a module only because the program calls it its model
    DENSE = auto()  # scores over a vocabulary or over every pixel: usually the largest tensor of the step
    NAMED = auto()  # one of a module's results, of which only a name tells: could be a detached metric
    SLOTS = auto()  # a tensor some of whose slots were set to values with a graph
    OPEN = (
        auto()
    )  # a record of which only some fields are known; a parameter that is computed with what is unknown
    PLAIN = auto()  # a module without parameters: it makes a graph only of what has one
    ON_HOST = auto()  # moved to the CPU: without its graph it holds nothing on the device
    FRESH = (
        auto()
    )  # what a tokenizer or an image processor gives: tensors, on whatever device, without a graph
    FIRST = auto()  # the first of the values that a module gives
    UNSURE_GRAD = auto()  # a tensor for certain; whether grad was enabled is not known
    UNSHOWN = (
        auto()
    )  # what a criterion out of sight gives, or one with a way to a number: no tensor on every path
    GUARDED = auto()  # a module whose own forward runs without grad, whoever calls it


# As plain integers: values are made and compared in the innermost loops, where an operator of the enum would cost a call.
MAYBE: Final = Flag.MAYBE.value
SCALAR: Final = Flag.SCALAR.value
LARGE: Final = Flag.LARGE.value
BOUNDED: Final = Flag.BOUNDED.value
VIEW: Final = Flag.VIEW.value
LOSS: Final = Flag.LOSS.value
EVAL: Final = Flag.EVAL.value
FROZEN: Final = Flag.FROZEN.value
CRITERION: Final = Flag.CRITERION.value
OUTPUT: Final = Flag.OUTPUT.value
PHASED: Final = Flag.PHASED.value
MIXED: Final = Flag.MIXED.value
ROLE: Final = Flag.ROLE.value
DENSE: Final = Flag.DENSE.value
NAMED: Final = Flag.NAMED.value
SLOTS: Final = Flag.SLOTS.value
OPEN: Final = Flag.OPEN.value
PLAIN: Final = Flag.PLAIN.value
ON_HOST: Final = Flag.ON_HOST.value
FRESH: Final = Flag.FRESH.value
FIRST: Final = Flag.FIRST.value
UNSURE_GRAD: Final = Flag.UNSURE_GRAD.value
UNSHOWN: Final = Flag.UNSHOWN.value
GUARDED: Final = Flag.GUARDED.value


class Token:
    """Identity is what counts; the fields are for messages."""

    __slots__ = ()


class Site(Token):
    """A call that made a graph."""

    __slots__ = ("depth", "function", "inner", "known", "origin", "path", "what")

    def __init__(self, at: ir.Part | None, what: str, function: ir.Function | None, path: str | None) -> None:
        self.origin: ir.Origin = at.origin if at is not None else None
        self.what = what  # "forward", "loss", "leaf", "call"
        self.function = function
        self.path = path
        self.depth = 0
        self.inner: frozenset[Site] = frozenset()  # for a call of the project's: the graphs made inside it


def with_inner(tokens: Iterable[Token]) -> frozenset[Token]:
    """The tokens and, for graphs that a call of the project's own functions made, those made inside it."""
    found: set[Token] = set()
    stack = list(tokens)
    while stack:
        token = stack.pop()
        if token not in found:
            found.add(token)
            if isinstance(token, Site):
                stack.extend(token.inner)
    return frozenset(found)


class Holder(Token):
    """A name that accumulates values across iterations."""

    __slots__ = ()


class ParamToken(Token):
    __slots__ = ("function", "name")

    def __init__(self, function: ir.Function, name: str) -> None:
        self.function = function
        self.name = name


@dataclass(frozen=True, slots=True)
class Detached(Token):
    """A parameter without its graph: `x.detach()` still shares the storage of `x`."""

    param: ParamToken


# Of Token: any of its kinds, and sets of one kind are met with sets of all.
Tokens: TypeAlias = frozenset[Any]
NO_TOKENS: Tokens = frozenset()


@dataclass(frozen=True, slots=True)
class Val:
    kind: Kind
    tokens: Tokens = NO_TOKENS
    flags: int = 0
    elem: Val | None = None
    items: tuple[Val, ...] | None = None
    ref: Any = None

    def has(self, flag: int) -> bool:
        return bool(self.flags & flag)

    def with_flags(self, flag: int) -> Val:
        return self if self.flags & flag == flag else replace(self, flags=self.flags | flag)

    def without_flags(self, flag: int) -> Val:
        return replace(self, flags=self.flags & ~flag) if self.flags & flag else self

    def with_tokens(self, tokens: Iterable[Token]) -> Val:
        """The value with more behind it; what is in a container is reached as well."""
        merged = self.tokens.union(tokens)
        if merged == self.tokens:
            return self
        if self.kind is not Kind.CONTAINER:
            return replace(self, tokens=merged)
        tokens = frozenset(tokens)
        elem = None if self.elem is None else self.elem.with_tokens(tokens)
        items = None if self.items is None else tuple(item.with_tokens(tokens) for item in self.items)
        return replace(self, tokens=merged, elem=elem, items=items)

    @property
    def is_tensor(self) -> bool:
        return self.kind in _TENSORS

    @property
    def is_surely_tensor(self) -> bool:
        """Whether it is proven to be one tensor with a graph: no raw result of an unknown module, which may be a tuple, and
        nothing looked up in one, which may be a number."""
        if self.kind is not Kind.GRAPH or self.flags & (OUTPUT | NAMED | OPEN):
            return False
        return not self.has(MAYBE) or self.has(SLOTS)

    @property
    def sites(self) -> frozenset[Any]:
        """The calls whose graphs stand behind the value (of `Site`)."""
        return frozenset(token for token in self.tokens if isinstance(token, Site))


_TENSORS = frozenset({Kind.DEVICE, Kind.GRAPH})

UNKNOWN = Val(Kind.UNKNOWN)
NUMBER = Val(Kind.NUMBER)
HOST = Val(Kind.HOST)
DEVICE = Val(Kind.DEVICE)
OPTIMIZER = Val(Kind.OPTIMIZER)
LOADER = Val(Kind.LOADER)


def container(
    elem: Val | None = None,
    items: tuple[Val, ...] | None = None,
    flags: int = 0,
    keys: tuple[Any, ...] | None = None,
) -> Val:
    """A list, tuple, set, dict or deque. `elem` joins what is in it; `items` are its values where all are known,
    `keys` a dict's keys, in the order of the items."""
    if items is not None and elem is None:
        for item in items:
            elem = item if elem is None else join(elem, item)
    tokens = elem.tokens if elem is not None else NO_TOKENS
    return Val(Kind.CONTAINER, tokens, flags, elem, items, keys)


def element(val: Val) -> Val:
    """What iterating over, or indexing, the value gives."""
    if val.kind is Kind.CONTAINER:
        return val.elem if val.elem is not None else UNKNOWN
    if val.kind is Kind.GRAPH:
        # A scalar has no parts: what is taken from it here is a pair, at this place, of a loss and something else.
        doubt = MAYBE if val.has(SCALAR) and not val.has(LOSS) else 0
        return Val(Kind.GRAPH, val.tokens, (val.flags | VIEW | doubt) & ~SCALAR)
    if val.kind is Kind.DEVICE:
        whole = frozenset(token for token in val.tokens if isinstance(token, Detached))
        return Val(Kind.DEVICE, whole, (val.flags | VIEW) & ~SCALAR)
    if val.kind is Kind.SYMBOL:
        return val
    if val.kind is Kind.HOST:
        return HOST
    return Val(Kind.UNKNOWN, val.tokens, val.flags & FRESH)


_STICKY = MAYBE | NAMED | MIXED | BOUNDED | VIEW | UNSURE_GRAD | OPEN | SLOTS | UNSHOWN

_ORDER = {Kind.GRAPH: 4, Kind.SYMBOL: 3, Kind.DEVICE: 2, Kind.NUMBER: 1}


def _are_alike(first: tuple[Val, ...], second: tuple[Val, ...]) -> bool:
    return len(first) == len(second) or max(len(first), len(second)) <= _MOST_ITEMS


def join(a: Val, b: Val) -> Val:
    """The value where two paths of control meet: no more than both paths prove.

    A graph on one path and a literal number on the other is a graph: that is how sums start. A graph on one path and
    a converted number on the other is unknown: the code looked at the type first.
    """
    if a is b or a == b:
        return a
    tokens = a.tokens | b.tokens
    flags = (a.flags & b.flags) | ((a.flags | b.flags) & _STICKY)
    if a.kind is Kind.NUMBER or b.kind is Kind.NUMBER:
        other = b if a.kind is Kind.NUMBER else a
        if a.kind is b.kind:
            return Val(Kind.NUMBER, tokens)
        return other.with_tokens(tokens)
    if a.kind is b.kind:
        if a.kind is Kind.MODULE and (a.flags ^ b.flags) & EVAL:
            flags |= PHASED
        if a.kind is Kind.CONTAINER:
            return _join_containers(a, b, tokens, flags)
        ref = a.ref if a.ref == b.ref else None
        if ref is None and a.kind in _NEED_REF:
            return Val(Kind.UNKNOWN, tokens)
        return Val(a.kind, tokens, flags, ref=ref)
    if a.kind in _ORDER and b.kind in _ORDER:
        top = a if _ORDER[a.kind] > _ORDER[b.kind] else b
        if {a.kind, b.kind} == {Kind.GRAPH, Kind.DEVICE}:
            flags |= MIXED
        return Val(top.kind, tokens, flags | (top.flags & (SCALAR | LARGE | LOSS)))
    if Kind.CONTAINER in (a.kind, b.kind):
        inner = a if a.kind is Kind.CONTAINER else b
        other = b if a.kind is Kind.CONTAINER else a
        if other.kind is Kind.UNKNOWN:
            return replace(inner, tokens=tokens)
    return Val(Kind.UNKNOWN, tokens)


_NEED_REF = frozenset({Kind.FUNCTION, Kind.CLASS, Kind.INSTANCE, Kind.QUALIFIED, Kind.CONTEXT})


def _join_containers(a: Val, b: Val, tokens: Tokens, flags: int) -> Val:
    if a.ref != b.ref and a.ref is not None and b.ref is not None:
        return _join_records(a, b, tokens, flags)
    items: tuple[Val, ...] | None = None
    if a.items is not None and b.items is not None and _are_alike(a.items, b.items):
        # Where one is longer, who takes as many values out of it has got that one.
        rest = max(a.items, b.items, key=len)[min(len(a.items), len(b.items)) :]
        items = (*(join(x, y) for x, y in zip(a.items, b.items, strict=False)), *rest)
    if a.elem is None or b.elem is None:
        elem = a.elem if b.elem is None else b.elem
    else:
        elem = join(a.elem, b.elem)
    return Val(
        Kind.CONTAINER, tokens, flags, elem, items, a.ref if a.ref == b.ref and items is not None else None
    )


def _join_records(a: Val, b: Val, tokens: Tokens, flags: int) -> Val:
    """Dicts of known keys: a key that only one path sets is what that path sets."""
    fields: dict[Any, Val] = {}
    for record in (a, b):
        for key, item in zip(record.ref, record.items or (), strict=False):
            fields[key] = join(fields[key], item) if key in fields else item
    elem: Val | None = None
    for item in fields.values():
        elem = item if elem is None else mixed(elem, item)
    return Val(Kind.CONTAINER, tokens, flags, elem, tuple(fields.values()), tuple(fields))


def mixed(a: Val, b: Val) -> Val:
    """Join for what stands side by side in a dict: a graph beside a number is a likely graph."""
    if a.kind is b.kind:
        return join(a, b)
    for one, other in ((a, b), (b, a)):
        if one.kind is Kind.GRAPH and other.kind in (Kind.HOST, Kind.NUMBER, Kind.DEVICE, Kind.UNKNOWN):
            return Val(Kind.GRAPH, a.tokens | b.tokens, one.flags | MAYBE)
    return join(a, b)


def held_parts(val: Val) -> list[Val]:
    """The tensors that keeping this value keeps: itself, or what is in a container, outermost first."""
    if val.kind is Kind.CONTAINER:
        if val.items is not None:
            return [part for item in val.items for part in held_parts(item)]
        return held_parts(val.elem) if val.elem is not None else []
    return [val] if val.kind in (Kind.GRAPH, Kind.DEVICE, Kind.SYMBOL) else []


def detached(val: Val) -> Val:
    """The value without its graph: what `.detach()` gives, or what it is when made under no_grad."""
    if val.kind is Kind.GRAPH:
        if val.flags & ON_HOST:
            return HOST
        return Val(Kind.DEVICE, flags=val.flags & (SCALAR | LARGE | VIEW | LOSS))
    if val.kind is Kind.CONTAINER:
        return container(
            detached(val.elem) if val.elem is not None else None,
            tuple(detached(item) for item in val.items) if val.items is not None else None,
            val.flags & BOUNDED,
            val.ref,
        )
    if val.kind is Kind.SYMBOL:
        cut = frozenset(Detached(token) for token in val.tokens if isinstance(token, ParamToken))
        return Val(Kind.DEVICE, cut)
    return UNKNOWN if val.kind in (Kind.UNKNOWN, Kind.DISTRIBUTION) else val

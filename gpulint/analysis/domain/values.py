"""The value of an expression, and what two of them have in common.

Nothing is "unknown, the end": what is not seen is a value too, which may carry the graph of what went into it, with an assumption
that says so. Confidence is arithmetic over the assumptions of what a claim rests on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import IntEnum
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Final, Literal

Kind = Literal[
    "bottom", "unknown", "none", "number", "text", "tensor", "parameter", "array", "module", "optimizer", "scheduler", "scaler",
    "accelerator", "list", "dict", "set", "tuple", "state", "parameters", "modules", "loader", "loaded", "object", "class", "function",
    "library", "context", "device", "logger", "handle", "copy", "clock",
]  # fmt: skip
Device = Literal["?", "host", "cuda"]
Size = Literal["?", "scalar", "batch"]

MOST_ASSUMPTIONS: Final = 3
_OF_GPU: Final = ("cuda", "torch.cuda")
PAIR: Final = {"values": 0, "indices": 1}  # the parts of `x.max(1)` by their names


class Graph(IntEnum):
    """Whether gradients may flow back through a value."""

    NONE = 0
    MAY = 1
    LIVE = 2


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


@dataclass(frozen=True, slots=True)
class Assumption:
    """What is taken for so where the code does not show it: in one clause, with the node that it is about."""

    clause: str
    at: Any = None


@dataclass(slots=True, unsafe_hash=True)  # nobody changes one; frozen, to make one takes three times as long
class Value:
    """`origins` are the places where a thing was made, each a node and its frame: of a tensor with a graph the forwards; of a
    network, a container or an instance the call or the parameter. `parts` are those of a tuple, or of a dict by key; `ref` is a
    class, a function, or a library's name, and `others` are those that it is on other ways."""

    kind: Kind = "unknown"
    graph: Graph = Graph.NONE
    device: Device = "?"
    size: Size = "?"
    const: Any = UNSET
    origins: frozenset[Any] = frozenset()
    parts: tuple[Any, ...] | None = None
    ref: Any = None
    receiver: Any = None
    assumptions: tuple[Assumption, ...] = ()
    others: tuple[Any, ...] = ()

    def but(self, **changes: Any) -> Value:
        new = Value(*_FIELDS(self))
        for name, one in changes.items():
            setattr(new, name, one)
        return new

    def assuming(self, *more: Assumption) -> Value:
        """The same, resting on more."""
        new = tuple(one for one in more if one not in self.assumptions)
        return self.but(assumptions=(*self.assumptions, *new)[:MOST_ASSUMPTIONS]) if new else self

    @property
    def without_const(self) -> Value:
        """The same, whatever number or text it is."""
        return self if self.const is UNSET else self.but(const=UNSET)

    @property
    def refs(self) -> tuple[Any, ...]:
        """The classes or functions that it may be of, or be."""
        return (self.ref, *self.others)

    @property
    def each(self) -> list[Value]:
        """The same as one of each of those classes, or as each function, by itself."""
        return [self.but(ref=one, others=()) for one in self.refs] if self.others else [self]

    @property
    def function(self) -> Any:
        """The function of the project that it is; None of anything else."""
        return self.ref if self.kind == "function" else None

    @property
    def full_name(self) -> str:
        """By what name a library has it; empty of anything else."""
        return self.ref if self.kind == "library" and isinstance(self.ref, str) else ""

    @property
    def calls(self) -> list[tuple[ast.Call, Any]]:
        """The calls that have made it, each with its frame."""
        made = (one for one in self.origins if isinstance(one[0], ast.Call) and one[1] is not None)
        return in_text_order(made)

    @property
    def inside(self) -> tuple[Value, ...]:
        """What is in it, as far as its parts are known: of a dict under whatever key."""
        return tuple(one[1] if isinstance(one, tuple) else one for one in self.parts or ())

    @property
    def is_moved(self) -> bool:
        """Whether it is on a GPU, whatever it is: most likely a tensor."""
        return self.kind == "unknown" and self.device == "cuda"

    @property
    def place(self) -> Device:
        """The device that a text or a device names, or the one that it is on."""
        if isinstance(self.const, str):
            return "host" if self.const == "cpu" else "cuda" if self.const.startswith(_OF_GPU) else "?"
        return self.device

    @property
    def is_known(self) -> bool:
        return self.kind not in ("unknown", "bottom")


_FIELDS: Final = attrgetter(*(one.name for one in fields(Value)))
BOTTOM: Final = Value("bottom")  # nothing yet: what is worked out right now
UNKNOWN: Final = Value()
NONE: Final = Value("none", const=None)
NUMBER: Final = Value("number", device="host", size="scalar")
TEXT: Final = Value("text")


def listed(element: Value, origins: frozenset[Any]) -> Value:
    """A list of what all are like one: it has their graph."""
    return Value("list", element.graph, origins=origins, receiver=element)


# Kinds that say more than others, where ways differ: what may be None is what it is else.
_LEAST: Final = "bottom none unknown number text context library".split()


def in_text_order(origins: Iterable[Any]) -> list[Any]:
    """Where something was made, in an order that is the same in each run: a set's goes by addresses."""
    found = list(origins)
    return sorted(found, key=_place) if len(found) > 1 else found


def _place(origin: Any) -> tuple[str, list[tuple[int, int]]]:
    node, frame = origin
    path = frame.function.file.path if frame is not None else ""
    nodes = [one for one, _ in frame.leading_to(node)] if frame is not None else [node]
    return path, [(getattr(one, "lineno", 0), getattr(one, "col_offset", 0)) for one in nodes]


def join(values: Iterable[Value]) -> Value:
    """What holds whichever of the values it is; of the kinds the one that says most."""
    found = BOTTOM
    for one in values:
        found = one if found is BOTTOM else _joined(found, one)
    return found


def together(values: Iterable[Value]) -> Value:
    """What an operation makes of several values: it has the graph of each, and that rests on nothing where that of one does not."""
    several = list(values)
    found = join(several)
    sure = min(
        (one.assumptions for one in several if one.graph and one.graph is found.graph),
        key=len,
        default=found.assumptions,
    )
    return found if sure == found.assumptions else found.but(assumptions=sure)


def join_ways(values: Iterable[Value], last: Value = BOTTOM) -> Value:
    """What holds whichever way the program goes: a device that may be a GPU is one, and so is where the `last` of the ways, if it is taken, has
    moved something to one, as `if use_cuda: x = x.cuda()` does. All of this costs something only there."""
    several = list(values)
    found = join(several)
    asked = several if found.kind in ("text", "device") else (last,)
    is_open = found.device == "?" and found.const is UNSET and len(several) > 1
    return found.but(device="cuda") if is_open and any(one.place == "cuda" for one in asked) else found


def _joined(a: Value, b: Value) -> Value:
    if a is b or "bottom" in (a.kind, b.kind):
        return a if b.kind == "bottom" else b
    first, second = (a, b) if _says(a) >= _says(b) else (b, a)
    same = a.kind == b.kind
    if second.kind == "none":
        return first.without_const
    if same and a.kind == "context" and a.ref != b.ref:
        return Value("context", ref="argument")  # it depends on the way which of them is entered
    parts = _joined_parts(a, b) if same and a.parts != b.parts else first.parts
    more = second if same or second.graph else BOTTOM  # what else of the two it has
    return Value(
        first.kind,
        max(a.graph, b.graph),
        a.device if a.device == b.device else "?" if same else first.device,
        a.size if a.size == b.size else "?" if same else first.size,
        a.const if same and type(a.const) is type(b.const) and a.const == b.const else UNSET,
        first.origins | more.origins,
        parts,
        first.ref if not same or a.ref == b.ref else (a.ref or b.ref),
        first.receiver,
        tuple(dict.fromkeys((*first.assumptions, *more.assumptions)))[:MOST_ASSUMPTIONS],
        _others(first, second) if same or first.kind in ("module", "object") else first.others,
    )


def _others(first: Value, second: Value) -> tuple[Any, ...]:
    """What either of them may be of beside the first one's own, classes or functions: of what a library has, nothing tells more."""
    several = [one for one in (*first.refs, *second.refs) if not isinstance(one, str | None)]
    return tuple(dict.fromkeys(one for one in several if type(one) is type(several[0])))[1:]


def _joined_parts(a: Value, b: Value) -> tuple[Any, ...] | None:
    if a.kind == "dict":
        found = dict(a.parts or ())
        found |= {key: join((found.get(key, BOTTOM), value)) for key, value in b.parts or ()}
        return tuple(found.items())
    if a.kind != "tuple" or a.parts is None or b.parts is None:
        return None
    # what only one of them has stays what it is there
    return tuple(map(join, zip_longest(a.parts, b.parts, fillvalue=BOTTOM)))


def _says(value: Value) -> int:
    return _LEAST.index(value.kind) if value.kind in _LEAST else len(_LEAST) + value.graph

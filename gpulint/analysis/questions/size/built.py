"""What is known of the values and the networks that a constructor makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo


class Unknown:
    """The value of what no constant says."""


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Named:
    """Something of a library, by its qualified name."""

    full: str


@dataclass(slots=True)
class Built:
    """What was made: `weights` are counted with 1 for each width that is not known, `about` with a typical one.

    `complete`: every layer was seen with all its widths; `seen`: every layer, if not with all its widths. `rows`: nothing but
    linear layers. `known`: every layer was seen, if not how often some of them are repeated. `looks_up`: nothing but tables.
    `mixes`: some class does more than to hand rows from layer to layer: it attends, transposes, takes points of space, or volumes.
    `known_as` is the name of a library's model, `own` are the attributes of what was made, and `made` is where,
    and `filename` the file of that.
    """

    weights: int = 0
    about: int = 0
    layers: int = 0
    complete: bool = True
    rows: bool = True
    seen: bool = True
    known: bool = True
    looks_up: bool = True
    mixes: bool = False
    convolutions: int = 0
    linear: int = 0
    known_as: str = ""
    own: Mapping[str, object] = field(default_factory=dict)
    made: ir.Part | None = None
    filename: str = ""

    def add(self, other: Built, times: int = 1) -> None:
        """Put another's weights to these."""
        self.weights += other.weights * times
        self.about += other.about * times
        self.layers += other.layers * times
        self.complete &= other.complete
        self.rows &= other.rows
        self.seen &= other.seen
        self.known &= other.known
        self.looks_up &= other.looks_up
        self.mixes |= other.mixes
        self.convolutions += other.convolutions
        self.linear += other.linear

    @property
    def maps(self) -> bool:
        """Whether pictures or the like go in and come out: what it saves grows with them, and not with its weights."""
        return self.convolutions > 0 and not self.linear


@dataclass(frozen=True, slots=True)
class Thing:
    """An object that is no network: settings, with their attributes."""

    own: dict[str, object]
    info: ClassInfo


class Returned(Exception):
    def __init__(self, value: object) -> None:
        self.value = value


@dataclass(slots=True)
class Scope:
    """Where statements are followed: the names of a function, and the attributes of the object it belongs to. A function
    within another sees the names of the `outer` one."""

    function: ir.Function
    names: dict[str, object]
    own: dict[str, object] = field(default_factory=dict)
    info: ClassInfo | None = None
    outer: Scope | None = None


@dataclass(frozen=True, slots=True)
class Closure:
    """A function, or a lambda, where it was written."""

    function: ir.Function
    outer: Scope


@dataclass(frozen=True, slots=True)
class Partial:
    """`partial(nn.LayerNorm, eps=1e-6)`: something to be called, and what it is given already."""

    target: object
    positional: Sequence[object]
    given: Mapping[str, object]

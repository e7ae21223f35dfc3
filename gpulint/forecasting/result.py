"""A forecast as data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from gpulint.forecasting.cards import Card
from gpulint.forecasting.replaying import Moment, Part

SCHEMA: Final = 1
KINDS: Final = (
    "parameters",
    "gradients",
    "optimizer state",
    "activations",
    "logits",
    "inputs",
    "temporaries",
    "workspaces",
)

_NUMBERS: Final = re.compile(r"\.\d+(?=\.|$)")  # in a module's name: "GPT.blocks.0.attention"

# *unknown*: what was reached fits, and the program's text shows more.
Fits = Literal["yes", "no", "open", "unknown"]


@dataclass(frozen=True, slots=True)
class Figure:
    """Bytes: what is forecast, and the interval that it is expected in. `rests_on` says what both rest on."""

    value: int
    low: int
    high: int
    rests_on: str


@dataclass(frozen=True, slots=True)
class Said:
    """A doubt in words, and where it comes from (file "" where there is no such place)."""

    code: str
    text: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """What a change to the program would make of the peaks; bytes, from a forecast of its own. `problem` says why there is
    none."""

    name: str
    text: str
    allocated: int = 0
    reserved: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch size that was tried."""

    size: int
    process: Figure
    fits: Fits


@dataclass(frozen=True, slots=True)
class Search:
    """The largest batch that fits, and all that were tried. `largest` is 0 where not even the smallest does; `bound` says that no
    larger one was tried."""

    argument: str
    largest: int
    tried: tuple[Batch, ...]
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a program would take on a card. `seconds` is how long the forecast took."""

    target: str
    arguments: tuple[str, ...]
    card: Card
    torch: str
    python: str
    settings: str
    trained: int
    evaluated: int
    seconds: float
    allocated: Figure
    reserved: Figure
    process: Figure
    fits: Fits
    peak_at: Moment
    out_of_memory: Moment | None
    parts: tuple[Part, ...]
    curve: tuple[tuple[int, int, int], ...]
    steps: tuple[tuple[int, str], ...]  # where each step ends in the curve's events, and its kind
    doubts: tuple[Said, ...]
    changes: tuple[Change, ...] = ()
    search: Search | None = None

    @property
    def kinds(self) -> Mapping[str, int]:
        """Bytes at the peak by kind, in the order of KINDS."""
        sizes: Counter[str] = Counter()
        for part in self.parts:
            sizes[part.kind] += part.nbytes
        return {kind: sizes[kind] for kind in KINDS if sizes[kind]}

    @property
    def modules(self) -> list[tuple[str, int, int]]:
        """Bytes at the peak by module of the network, and of how many modules, the largest first: those of one name that only numbers
        tell apart, as the layers of a list, together; none where no module made any. What is outside of all is not in it."""
        sizes: Counter[str] = Counter()
        names: dict[str, set[str]] = {}
        for part in self.parts:
            alike = _NUMBERS.sub(".*", part.module)
            sizes[alike] += part.nbytes
            names.setdefault(alike, set()).add(part.module)
        return [(name, size, len(names[name])) for name, size in sizes.most_common() if name]

    @property
    def lines(self) -> list[tuple[str, int, int, tuple[str, ...]]]:
        """File, line, bytes at the peak, and of which kinds; the largest first."""
        sizes: Counter[tuple[str, int]] = Counter()
        kinds: dict[tuple[str, int], Counter[str]] = {}
        for part in self.parts:
            place = (part.file, part.line)
            sizes[place] += part.nbytes
            kinds.setdefault(place, Counter())[part.kind] += part.nbytes
        return [
            (file, line, size, tuple(kind for kind, _ in kinds[file, line].most_common()))
            for (file, line), size in sizes.most_common()
        ]

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        data.update(schema=SCHEMA, card=self.card.to_json(), kinds=dict(self.kinds))
        return data

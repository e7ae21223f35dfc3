"""What the peaks of a run are made of, and which cards its processes are on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpulint.runtime.record.records import Record

# The start with warm-up; the sampled steps; evaluation loops, whenever they run; what comes after the sampled steps besides.
Stretch = Literal["start", "steps", "evaluation", "later"]


@dataclass(frozen=True, slots=True)
class Position(Record):
    """A place in the user's code, as `Site` is one; line 0 and file "" where no Python line is known."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class PeakLine(Record):
    """A line and the `bytes` that were allocated there and alive at the peak. `kept` of its bytes are alive after the sampled
    steps as well, and `holder` says in words who keeps most of them; "" where nobody was found, or nothing is kept."""

    file: str
    line: int
    function: str
    bytes: int
    kept: int = 0
    holder: str = ""


@dataclass(frozen=True, slots=True)
class StretchPeak(Record):
    """The highest `allocated` of one stretch of the run, in bytes, and the most that was `reserved` in it (None without
    CUDA). `lines` are the places with most bytes at a moment at which `traced` bytes were allocated: the peak itself, but for
    what the allocator rounds up, where the record reaches that far. None where it was not recorded."""

    stretch: Stretch
    allocated: int
    reserved: int | None = None
    traced: int | None = None
    lines: tuple[PeakLine, ...] = ()


@dataclass(frozen=True, slots=True)
class CardUse(Record):
    """What a process has on one card. `own` says that it is the card that it computes on; `uuid` is "" where torch does not tell.
    `context` is whether it has a CUDA context there, which costs some hundred MiB."""

    index: int
    name: str
    uuid: str
    own: bool
    context: bool
    allocated: int
    reserved: int

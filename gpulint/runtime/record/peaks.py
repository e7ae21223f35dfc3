"""What the peaks of a run are made of, and which cards its processes are on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gpulint.runtime.record.records import Record

# The sampled steps; evaluation loops, whenever they run; the start with warm-up; what comes after the sampled steps besides.
Stretch = Literal["steps", "evaluation", "start", "later"]
STRETCHES: dict[str, str] = {
    "steps": "the sampled steps",
    "evaluation": "the evaluation",
    "start": "the start, with warm-up",
    "later": "what came after the sampled steps",
}


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


def main_of(peaks: Iterable[StretchPeak]) -> StretchPeak:
    """That of the sampled steps; where there are none, of what counts next."""
    return min(peaks, key=lambda peak: list(STRETCHES).index(peak.stretch))


def highest_of(peaks: Iterable[StretchPeak]) -> StretchPeak | None:
    """The peak of a whole run; of equals that of the stretch which counts most."""
    return max(peaks, key=lambda peak: (peak.allocated, -list(STRETCHES).index(peak.stretch)), default=None)


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

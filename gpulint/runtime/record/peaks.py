"""What the peaks of a run are made of, which cards its processes are on, and limits that a run is held against."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from gpulint.runtime.record.records import Record, Site

# The sampled steps; evaluation loops, whenever they run; the start with warm-up; what comes after the sampled steps besides.
Stretch = Literal["steps", "evaluation", "start", "later"]
STRETCHES: dict[str, str] = {
    "steps": "the sampled steps",
    "evaluation": "the evaluation",
    "start": "the start, with warm-up",
    "later": "what came after the sampled steps",
}


@dataclass(frozen=True, slots=True)
class PeakLine(Site):
    """A line and the `bytes` that were allocated there and alive at the peak. `kept` of its bytes are alive after the sampled
    steps as well, and `holder` says in words who keeps most of them; "" where nobody was found, or nothing is kept."""

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


# -- limits --------------------------------------------------------------------------------------------------

Status = Literal["within", "exceeded", "fell"]
Limit = Literal["max-peak", "baseline", "untouched", "max-host-drift"]


@dataclass(frozen=True, slots=True)
class Limits(Record):
    """What a run is held against. `max_peak` is in bytes, None for no limit; `baseline` the path of a file of committed peaks, ""
    for none, `tolerance` in percent of those. With `write` the file gets this run's peaks, and nothing is compared with it.
    `exclusive` wants cards that nobody else uses. `untouched` are the bytes that may be alive and touched by nothing, `host_drift` those
    that host memory may grow by in a step; None for no limit."""

    max_peak: int | None = None
    baseline: str = ""
    tolerance: float = 1.0
    write: bool = False
    exclusive: bool = False
    untouched: int | None = None
    host_drift: int | None = None

    @property
    def beside_peak(self) -> bool:
        """Whether something is limited that every run measures."""
        return self.untouched is not None or self.host_drift is not None

    @property
    def on_peak(self) -> bool:
        """Whether a peak is limited, so that what it is made of has to be known."""
        return self.max_peak is not None or bool(self.baseline)


@dataclass(frozen=True, slots=True)
class LineAtPeak(Site):
    """A line, and the `bytes` that were allocated there and alive at a peak. `file` is as it is shown to people and written into
    a baseline, relative to that where it has been there, "" (with line 0) where no Python line is known; `path` is where it is.
    `code` is the line's text, which finds it again after it has moved. `kept` of its bytes outlive the step, and `holder` keeps
    them. `before` is what it had in the baseline, where it had less: None where no baseline is compared, or it lists no such
    line; `grew` is by how much it has more, at least."""

    code: str
    bytes: int
    path: str = ""
    kept: int = 0
    holder: str = ""
    before: int | None = None
    grew: int | None = None


@dataclass(frozen=True, slots=True)
class Peak(Record):
    """The peak of a process or a test, in bytes, as a baseline has it.

    `allocated` is what is compared. `others` are peaks of other stretches by name ("start", "evaluation"), each compared where
    both have it. `reserved`, which depends on what ran before, and `drift`, in bytes a step, are there to be read. `lines` are
    those with most bytes at the peak, largest first, and `other_lines` the same of the other stretches."""

    allocated: int
    reserved: int | None = None
    drift: float = 0.0
    others: dict[str, int] = field(default_factory=dict)
    lines: tuple[LineAtPeak, ...] = ()
    other_lines: dict[str, tuple[LineAtPeak, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakOfRank(Peak):
    """The peaks of one process of a run: `allocated` of the stretch `main`, the sampled steps, `run` of the whole run."""

    rank: int
    card: str
    torch: str
    main: str
    run: int


@dataclass(frozen=True, slots=True)
class Check(Record):
    """One peak and what it may be: `allowed` is the most that is no failure. `stretch` is the stretch of the run, `before` what the
    baseline says, where it is that which is compared. `text` is one sentence. `lines` are those that grew most, or else those with most bytes."""

    limit: Limit
    status: Status
    rank: int
    stretch: str
    now: int
    allowed: int
    before: int | None
    text: str
    lines: tuple[LineAtPeak, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbour(Record):
    """Another process on a card that the run could see. `pid` is 0 where it cannot be seen from here, `bytes` None where the driver does
    not tell; `when` it was there."""

    card: str
    uuid: str
    pid: int
    bytes: int | None
    command: str
    when: Literal["before", "after"] = "before"


@dataclass(frozen=True, slots=True)
class ForeignContext(Record):
    """A process that has a context on the card of another rank. `bytes` is what it takes there, None where the driver does not
    tell."""

    rank: int
    card: int
    name: str
    owner: int
    bytes: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Gate(Record):
    """A run held against `limits`. `problems` are why it could not be, one sentence each; `notes` what the reader has to know.
    `measured` says what the figures are. `written` is the number of peaks that the baseline was given."""

    limits: Limits
    measured: str = ""
    ranks: tuple[PeakOfRank, ...] = ()
    checks: tuple[Check, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    written: int | None = None

    @property
    def exceeded(self) -> tuple[Check, ...]:
        """The limits that were exceeded, the worst first."""
        return tuple(check for check in self.checks if check.status == "exceeded")

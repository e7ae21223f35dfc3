"""Limits on memory, and a run held against them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gpulint.runtime.record.records import Record

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
class LineAtPeak(Record):
    """A line, and the `bytes` that were allocated there and alive at a peak. `file` is as it is shown to people and written into
    a baseline, relative to that where it has been there, "" (with line 0) where no Python line is known; `path` is where it is.
    `code` is the line's text, which finds it again after it has moved. `kept` of its bytes outlive the step, and `holder` keeps
    them. `before` is what it had in the baseline, where it had less: None where no baseline is compared, or it lists no such
    line; `grew` is by how much it has more, at least."""

    file: str
    line: int
    function: str
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

"""What a trial is about and what came of it, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gpulint.findings import Finding, Fix
from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.record.records import Record
from gpulint.runtime.record.result import RunResult

MAX_RUNS = 12
Status = Literal[
    "pays",
    "changes nothing",
    "changes the result",
    "cannot be compared",
    "breaks",
    "not reached",
    "not tried",
]
Tell = Callable[[Sequence[Finding]], Iterable[Finding]]
Unit = Literal["bytes", "bytes a step", "nodes", "seconds"]


@dataclass(frozen=True, slots=True)
class TrialFix:
    """One set of edits to one file, and the findings that offer it. `number` counts from 1 in order of place. `told` are the findings
    as people know them: those of a notebook's script, in its cells."""

    number: int
    findings: tuple[Finding, ...]
    told: tuple[Finding, ...] = ()

    @property
    def first(self) -> Finding:
        """The finding that stands for all."""
        return self.findings[0]

    @property
    def shown(self) -> Finding:
        """The same, as it is told."""
        return self.told[0] if self.told else self.first

    @property
    def fix(self) -> Fix:
        assert self.first.fix is not None
        return self.first.fix

    @property
    def file(self) -> str:
        return self.first.filename

    @property
    def is_safe(self) -> bool:
        """Whether the linter has proven that it changes no result."""
        return any(
            finding.fix is not None and finding.fix.applicability == "safe" for finding in self.findings
        )

    @property
    def is_about_time(self) -> bool:
        """Whether what it claims to save is time."""
        return any(finding.runtime_claim.kind == "time" for finding in self.findings)

    @property
    def codes(self) -> str:
        """`GPU101`, or `GPU101, GPU104`."""
        return ", ".join(dict.fromkeys(finding.code for finding in self.findings))


@dataclass(frozen=True, slots=True)
class Gain(Record):
    """One figure before and after. `noise` is by how much two runs of the unchanged script differ. What is saved is positive in
    `saved`; `counts` says that it is beyond noise, in either direction."""

    name: str
    unit: Unit
    before: float
    after: float
    noise: float
    counts: bool

    @property
    def saved(self) -> float:
        return self.before - self.after

    @property
    def share(self) -> float:
        """The part of what there was that is saved."""
        return self.saved / self.before if self.before else 0.0

    @property
    def is_better(self) -> bool:
        return self.counts and self.saved > 0

    @property
    def is_worse(self) -> bool:
        return self.counts and self.saved < 0


@dataclass(frozen=True, slots=True)
class Judged:
    """What trying a fix has shown. `gains` are its own where `alone`, else those of the fixes that it was tried with."""

    fix: TrialFix
    status: Status
    text: str
    gains: tuple[Gain, ...] = ()
    alone: bool = True

    @property
    def is_our_defect(self) -> bool:
        """Whether a fix that was called safe has changed the result or broken the script."""
        return self.fix.is_safe and self.status in ("changes the result", "breaks")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run: with which fixes (by number), what became of it, and how long it took."""

    label: str
    fixes: tuple[int, ...]
    seconds: float
    outcome: str


@dataclass(frozen=True, slots=True)
class Trial:
    """A whole trial. `before` is the first run of the unchanged script, `again` its second, `after` the run with all fixes that
    pay; `gains` compare the two. `noise` says within what the runs were compared. `texts` are files as the fixes that pay make
    them, by absolute path; `originals` as they were read. `written` are those that stand on the disk now. `left` is what `verify`
    says of the program with all fixes that pay. `failure` says why nothing could be tried."""

    target: str
    judged: tuple[Judged, ...] = ()
    before: RunResult | None = None
    again: RunResult | None = None
    after: RunResult | None = None
    gains: tuple[Gain, ...] = ()
    noise: str = ""
    doubts: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    originals: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    left: Verification | None = None
    failure: str = ""

    @property
    def paying(self) -> tuple[Judged, ...]:
        return tuple(one for one in self.judged if one.status == "pays")

    @property
    def exit_code(self) -> int:
        """0: nothing is left to gain; 1: gains were found and not applied, or something drifts that no fix ends; 2: nothing could be
        tried."""
        if self.failure:
            return 2
        drifts = self.left is not None and self.left.drifting
        return 1 if drifts or (self.paying and not self.written) else 0

    def count(self, status: Status) -> int:
        """How many fixes have come out so."""
        return sum(one.status == status for one in self.judged)


def fixes_of(findings: Iterable[Finding], tell: Tell = tuple) -> list[TrialFix]:
    """The fixes that the findings offer, each set of edits once, in order of place. `tell` turns findings into what is told."""
    by_edits: dict[tuple[str, object], list[Finding]] = {}
    for finding in sorted(findings, key=lambda one: one.sort_key):
        if finding.fix is not None and finding.fix.edits:
            by_edits.setdefault((finding.filename, finding.fix.edits), []).append(finding)
    found = enumerate(map(tuple, by_edits.values()), 1)
    return [TrialFix(number, same, tuple(tell(same))) for number, same in found]


def numbers(fixes: Sequence[TrialFix]) -> tuple[int, ...]:
    return tuple(fix.number for fix in fixes)

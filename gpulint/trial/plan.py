"""What a trial is about and what came of it, as data: what a run costs, and what is saved between two, drift, peak, reserved memory, time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gpulint.findings import Finding, Fix
from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.record.records import Record
from gpulint.runtime.record.result import KIND_NAMES, RankResult, RunResult, StepKind
from gpulint.units import format_bytes

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
        return any(finding.is_mended(unsafe=False) for finding in self.findings)

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
class Attempt(Record):
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


LEAST_BYTES = 512  # the caching allocator's smallest block
LEAST_SHARE = 0.001  # of a peak
LEAST_RESERVED = 2 * 1024 * 1024  # the caching allocator's smallest segment
LEAST_TIME = 0.03  # of a step
FEWEST = 8  # sampled steps below which no time is told


@dataclass(frozen=True, slots=True)
class Cost:
    """One figure of one run, the largest of its ranks, and the single values that it is the middle of."""

    name: str
    unit: Unit
    value: float
    values: tuple[float, ...] = ()


def costs_of(run: RunResult) -> dict[str, Cost]:
    """Every figure that was measured, by name."""
    found: dict[str, Cost] = {}
    for rank in run.ranks:
        for cost in _costs(rank):
            if cost.name not in found or cost.value > found[cost.name].value:
                found[cost.name] = cost
    return found


def _costs(rank: RankResult) -> Iterator[Cost]:
    for kind, name in KIND_NAMES.items():
        if not rank.steps(kind):
            continue
        leaks = [drift for drift in rank.drifts if drift.status == "leak" and drift.kind == kind]
        for place, what in (("device", "drift"), ("host", "host drift")):
            drift = sum(leak.bytes_per_step for leak in leaks if leak.place == place)
            yield Cost(f"{what} in {name}", "bytes a step", drift)
        yield from _levels(rank, kind, name)
    if rank.peak is not None:
        yield Cost("peak", "bytes", rank.peak.allocated)
    yield Cost("graph nodes of earlier steps held", "nodes", sum(holder.nodes for holder in rank.holders))
    unused = [
        one.kept or 0 for one in rank.forwards if one.weights and one.grad and one.dead and not one.visited
    ]
    yield Cost("activations kept for nothing", "bytes", sum(unused))  # of one call of each


def _levels(rank: RankResult, kind: StepKind, name: str) -> Iterator[Cost]:
    samples = [s for s in rank.samples if s.sampled and s.kind == kind]
    # An evaluation goes on where it is no longer sampled; before training is sampled, it warms up.
    peaks = [s.peak for s in samples if s.peak is not None]
    if kind == "eval":
        peaks += [peak.allocated for peak in rank.peaks if peak.stretch == "evaluation"]
    if peaks:
        yield Cost(f"peak in {name}", "bytes", max(peaks))
    reserved = [s.reserved for s in samples if s.reserved is not None]
    if reserved:
        yield Cost(f"reserved in {name}", "bytes", max(reserved))
    durations = tuple(s.duration for s in samples)
    if len(durations) >= FEWEST:
        yield Cost(f"step time in {name}", "seconds", statistics.median(durations), durations)


def gains_between(unchanged: Sequence[RunResult], after: RunResult, by_time: bool = True) -> tuple[Gain, ...]:
    """What `after` saves and what it costs, compared with runs of the unchanged script; what is nothing before and after is left
    out. Not `by_time`: time is left out."""
    every = [costs_of(run) for run in unchanged]
    changed = costs_of(after)
    found = []
    for name in every[0]:
        if name in changed:
            gain = _gain([costs[name] for costs in every if name in costs], changed[name])
            if (gain.before or gain.after) and (by_time or gain.unit != "seconds"):
                found.append(gain)
    return tuple(found)


def _gain(same: Sequence[Cost], changed: Cost) -> Gain:
    first = same[0]
    noise = max(cost.value for cost in same) - min(cost.value for cost in same)
    if first.unit == "seconds":
        return _time(same, changed, noise)
    moved = abs(first.value - changed.value)
    least = 1.0
    if first.unit == "bytes":
        reserved = first.name.startswith("reserved")
        least = LEAST_RESERVED if reserved else max(LEAST_BYTES, LEAST_SHARE * first.value)
    counts = moved >= least and moved > 2 * noise
    return Gain(first.name, first.unit, first.value, changed.value, noise, counts)


def _time(same: Sequence[Cost], changed: Cost, noise: float) -> Gain:
    """Steps count as faster, or slower, where the middle half of them lies beyond that of every unchanged run."""
    values = [cost.value for cost in same]
    before = min(values) if changed.value < min(values) else max(values)
    moved = abs(before - changed.value)
    far = moved > max(noise, LEAST_TIME * before) and not min(values) <= changed.value <= max(values)
    counts = far and all(_apart(cost, changed) for cost in same)
    return Gain(same[0].name, "seconds", before, changed.value, noise, counts)


def _apart(one: Cost, other: Cost) -> bool:
    (low, _, high), (other_low, _, other_high) = (statistics.quantiles(c.values, n=4) for c in (one, other))
    return other_high < low or other_low > high


def amount(value: float, unit: Unit) -> str:
    """A figure for people."""
    if unit == "seconds":
        return f"{value * 1000:.2f} ms"
    if unit == "nodes":
        return f"{value:.0f}"
    return format_bytes(round(value)) + (" a step" if unit == "bytes a step" else "")


def pays(gains: Sequence[Gain], by_time: bool = True) -> bool:
    """Whether anything is saved beyond noise. Time counts only where a fix claims to save some: a machine's pace varies."""
    return any(gain.is_better and (by_time or gain.unit != "seconds") for gain in gains)

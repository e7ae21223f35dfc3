"""How memory moved in the steps of each kind, and which of that growth is harmless or unexplained.

The head of a report says what `Phase` says, its foot what the verdicts say; `Harmless` and `Unexplained` are
what lies between the two. Pure functions on records.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gpulint.findings import Finding
from gpulint.runtime.parent.evidence import Evidence, Share, real
from gpulint.runtime.parent.judgement import place
from gpulint.runtime.record import drift as drifts
from gpulint.runtime.record.records import Record
from gpulint.runtime.record.result import (
    KIND_NAMES,
    Drift,
    Figure,
    Holder,
    RankResult,
    Sample,
    Site,
    StepKind,
    TrendStatus,
    count_steps,
    said_steps,
)
from gpulint.units import format_bytes

SHOWN: tuple[Figure, ...] = ("allocated", "reserved", "rss")
FEWEST = 5  # sampled steps below which no trend is told
MOST_POINTS = 200  # of a series, for its slope: the slopes of all pairs are computed
UNEXPLAINED = 0.25  # of the growth of a step: less is the measurement's

Why = Literal["bounded", "occasional", "gc-garbage", "optimizer", "host"]


@dataclass(frozen=True, slots=True)
class Movement(Record):
    """How one figure moved over the sampled steps of a phase, in bytes.

    `slope` is what a step adds, `within` whether that is so within each loop alone. `status` is *unknown*
    where there are too few steps.
    """

    figure: Figure
    status: TrendStatus
    first: int
    last: int
    low: int
    high: int
    slope: float
    within: bool = False


@dataclass(frozen=True, slots=True)
class Phase(Record):
    """The steps of one kind that one rank took, in `loops` loops: `steps` in all, `warmup` and `sampled` of
    them."""

    rank: int
    kind: StepKind
    steps: int
    warmup: int
    sampled: int
    loops: int
    figures: tuple[Movement, ...] = ()

    @property
    def name(self) -> str:
        """`training`, `evaluation`."""
        return KIND_NAMES[self.kind]

    @property
    def headline(self) -> str:
        """`training: 20 steps sampled after 3 of warm-up`."""
        if not self.sampled:
            return f"{self.name}: {said_steps({self.kind: self.steps})} of warm-up, none sampled"
        loops = f" in {self.loops} loops" if self.loops > 1 else ""
        after = f" after {self.warmup} of warm-up" if self.warmup else ", no warm-up"
        return f"{self.name}: {said_steps({self.kind: self.sampled})} sampled{loops}{after}"

    def of(self, figure: Figure) -> Movement | None:
        """How this figure moved, where it was measured."""
        return next((one for one in self.figures if one.figure == figure), None)


@dataclass(frozen=True, slots=True)
class Harmless(Record):
    """Growth that is no drift, and why. `device` and `host` are bytes a step, `total` is what had piled
    up."""

    text: str
    why: Why
    kind: StepKind
    device: float
    host: float
    total: int
    born: tuple[Site, ...] = ()
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Unexplained(Record):
    """`allocated` grew from step to step by `device` bytes more than survivors account for."""

    text: str
    kind: StepKind
    device: float
    ranks: tuple[int, ...] = ()


# -- phases --------------------------------------------------------------------------------------------------


def phases(rank: RankResult) -> tuple[Phase, ...]:
    """The kinds of steps this rank took, training first."""
    found = []
    for kind in KIND_NAMES:
        samples = [sample for sample in rank.samples if sample.kind == kind]
        if samples:
            found.append(_phase(rank.rank, kind, samples))
    return tuple(found)


def _phase(rank: int, kind: StepKind, samples: Sequence[Sample]) -> Phase:
    loops = _loops(samples)
    moved = (_movement(figure, kind, loops) for figure in SHOWN)
    sampled = sum(map(len, loops))
    figures = tuple(one for one in moved if one is not None)
    return Phase(rank, kind, len(samples), len(samples) - sampled, sampled, len(loops), figures)


def _loops(samples: Sequence[Sample]) -> list[list[Sample]]:
    """The sampled steps, parted where another loop begins with its warm-up."""
    found: list[list[Sample]] = []
    before = False
    for sample in samples:
        if sample.sampled:
            if not before:
                found.append([])
            found[-1].append(sample)
        before = sample.sampled
    return found


def _movement(figure: Figure, kind: StepKind, loops: Sequence[Sequence[Sample]]) -> Movement | None:
    series = [[value for s in loop if (value := getattr(s, figure)) is not None] for loop in loops]
    values = [value for one in series for value in one]
    if len(values) < 2:
        return None
    ends = (values[0], values[-1], min(values), max(values))
    whole = _trend(figure, kind, values)
    long = [one for one in series if len(one) >= FEWEST]
    if len(series) > 1 and long:
        within = [_trend(figure, kind, one) for one in long]
        rising = [slope for status, slope in within if status == "growing"]
        if 2 * len(rising) >= len(within):
            return Movement(figure, "growing", *ends, statistics.median(rising), within=True)
    return Movement(figure, whole[0], *ends, whole[1])


def _trend(figure: Figure, kind: StepKind, values: Sequence[int]) -> tuple[TrendStatus, float]:
    stride = -(-len(values) // MOST_POINTS)
    one = drifts.trend(figure, kind, values[::stride])
    return one.status, one.slope / stride


def movement_text(moved: Movement, arrow: str = "→") -> str:
    """`1.20 GiB → 1.29 GiB, +4.61 MiB a step`."""
    ends = f"{format_bytes(moved.first)} {arrow} {format_bytes(moved.last)}"
    if moved.low == moved.high:
        return f"{ends}, flat"
    if moved.status in ("growing", "shrinking", "fragmentation"):
        loop = " within a loop" if moved.within else ""
        return f"{ends}, {format_bytes(moved.slope, signed=True)} a step{loop}{_aside(moved)}"
    if moved.status == "unknown":
        return f"{ends}, too few steps for a trend"
    if (moved.first, moved.last) == (moved.low, moved.high):
        return f"{ends}, not steadily"
    return f"{ends}, up and down between {format_bytes(moved.low)} and {format_bytes(moved.high)}"


def _aside(moved: Movement) -> str:
    if moved.figure == "rss" and moved.status == "growing":
        return " (host memory: not counted as drift)"
    if moved.figure == "reserved" and moved.status == "growing":
        return " (cached by the allocator: not counted as drift)"
    return ""


# -- what is harmless ----------------------------------------------------------------------------------------


def harmless(findings: Sequence[Finding], evidence: Sequence[Evidence]) -> tuple[Harmless, ...]:
    """Every growth that is no drift and that no verdict on `findings` speaks of, largest first."""
    merged: dict[tuple[str, StepKind, str], Harmless] = {}
    for one in evidence:
        ranks = (one.rank.rank,) if len(evidence) > 1 else ()
        for key, found in _of_rank(findings, one).items():
            known = merged.get(key)
            larger = found if known is None or found.total > known.total else known
            merged[key] = replace(larger, ranks=(*(known.ranks if known else ()), *ranks))
    return tuple(sorted(merged.values(), key=lambda h: (-h.device, -h.total)))


def _of_rank(findings: Sequence[Finding], one: Evidence) -> dict[tuple[str, StepKind, str], Harmless]:
    told = _told(findings, one)
    groups: dict[tuple[str, StepKind, str], list[tuple[Drift, Holder | None]]] = {}
    for drift in one.rank.drifts:
        keeper = _keeper(drift, one)
        why = _why(drift, keeper, one)
        if why is None or drift in told:
            continue
        name = keeper.text if keeper is not None else f"{real(drift.site.file)}:{drift.site.line}"
        groups.setdefault((why, drift.kind, name), []).append((drift, keeper))
    return {key: _one_line(key[0], group) for key, group in groups.items()}  # type: ignore[arg-type]


def _told(findings: Sequence[Finding], one: Evidence) -> set[Drift]:
    """What verdicts speak of already, as confirmed growth or as the reason why there is none."""
    told: set[Drift] = set()
    for finding in findings:
        if finding.runtime_claim.kind in ("drift", "cycle"):
            told.update(one.born_at(finding))
            for holder in one.holders(finding):
                told.update(one.drifts_of(holder))
    return told


def _keeper(drift: Drift, one: Evidence) -> Holder | None:
    """The holder that keeps most of what a site left behind."""
    kept = [
        (held.bytes, holder)
        for holder in one.rank.holders
        if holder.place == drift.place
        for held in holder.births
        if held.site == drift.site
    ]
    return max(kept, key=lambda pair: pair[0])[1] if kept else None


def _why(drift: Drift, keeper: Holder | None, one: Evidence) -> Why | None:
    """Why this is no drift; None where it is, or belongs to what is: of a list that grows in an evaluation
    the training sees now and then a piece."""
    growth = one.growth(keeper) if keeper is not None else Share()
    if drift.place == "host":
        return "host" if drift.status == "leak" and not growth.nodes else None
    if growth or any(leak.site == drift.site for leak in one.rank.leaks()):
        return "optimizer" if keeper is not None and keeper.scope == "optimizer" else None
    return None if drift.status == "leak" else drift.status


def _one_line(why: Why, group: Sequence[tuple[Drift, Holder | None]]) -> Harmless:
    first, keeper = max(group, key=lambda pair: pair[0].total)
    total = sum(drift.total for drift, _ in group)
    rate = sum(drift.bytes_per_step for drift, _ in group)
    host = first.place == "host"
    born = tuple(drift.site for drift, _ in group)[:5]
    text = f"{format_bytes(total)} ({format_bytes(round(rate))} a step) {_words(why, first, keeper)}"
    return Harmless(text, why, first.kind, 0.0 if host else rate, rate if host else 0.0, total, born)


def _words(why: Why, drift: Drift, keeper: Holder | None) -> str:
    known = keeper is not None and keeper.scope != "unknown"
    held = f"kept by {keeper.text}" if keeper is not None and known else f"born at {place(drift.site)}"
    if why == "host":
        return f"of tensors in host memory, {held}: none of it is on the GPU"
    if why == "optimizer":
        return f"{held}: an optimizer's own state is not counted as drift"
    if why == "gc-garbage":
        return f"born at {place(drift.site)} {drift.reason}"
    return drift.reason if drift.limited else f"{held}: {drift.reason}"


# -- what is not explained -----------------------------------------------------------------------------------


def unexplained(evidence: Sequence[Evidence]) -> tuple[Unexplained, ...]:
    """Steady growth of `allocated` that survivors, of whatever kind, do not account for."""
    found: dict[StepKind, Unexplained] = {}
    for one in evidence:
        for phase in phases(one.rank):
            left = _left_over(phase, one)
            if left <= max(drifts.QUANTUM, found[phase.kind].device if phase.kind in found else 0.0):
                continue
            text = (
                f"allocated grew by {format_bytes(round(left))} a {phase.name} step more than what is named "
                "here: memory that is in use at the end of a step and gets larger, such as longer batches, or "
                "that was allocated outside Python"
            )
            ranks = (one.rank.rank,) if len(evidence) > 1 else ()
            found[phase.kind] = Unexplained(text, phase.kind, left, ranks)
    return tuple(found.values())


def _left_over(phase: Phase, one: Evidence) -> float:
    """Bytes a step of growth that nothing accounts for."""
    moved = phase.of("allocated")
    if moved is None or moved.status != "growing":
        return 0.0
    known = sum(_rate(one.rank.drifts, kind) * often for kind, often in _mixture(phase, one.rank).items())
    left = moved.slope - known
    return left if left > UNEXPLAINED * moved.slope else 0.0


def _rate(found: Sequence[Drift], kind: StepKind) -> float:
    return sum(d.bytes_per_step for d in found if d.kind == kind and d.place == "device")


def _mixture(phase: Phase, rank: RankResult) -> dict[StepKind, float]:
    """How many steps of each kind come with one step of the phase: what an evaluation keeps shows in the
    training around it."""
    own = [sample.seconds for sample in rank.samples if sample.kind == phase.kind and sample.sampled]
    between = [s for s in rank.samples if s.kind != phase.kind and own[0] < s.seconds < own[-1]]
    others = {kind: number / len(own) for kind, number in count_steps(between).items()}
    return {**others, phase.kind: 1.0} if not _is_within(phase) else {phase.kind: 1.0}


def _is_within(phase: Phase) -> bool:
    moved = phase.of("allocated")
    return moved is not None and moved.within

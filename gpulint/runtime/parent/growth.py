"""How memory moved in the steps of each kind, and which of that growth is harmless or unexplained.

The head of a report says what `Phase` says, its foot what the verdicts say; `Harmless` and `Unexplained` are
what lies between the two. Pure functions on records.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gpulint.findings import Finding
from gpulint.runtime.parent.evidence import Evidence, Share, over_ranks, real
from gpulint.runtime.parent.judgement import per, place, rate
from gpulint.runtime.record import drift as drifts
from gpulint.runtime.record import result
from gpulint.runtime.record.records import Record
from gpulint.runtime.record.series import EVALUATION, ROUND, STRETCH
from gpulint.units import format_bytes

SHOWN: tuple[result.Figure, ...] = ("allocated", "reserved", "rss", "heap")
FEWEST = 5  # sampled steps below which no trend is told
CALLS = ("call of", "run of", STRETCH)  # how windows are named that often come but once
MOST_POINTS = 200  # of a series, for its slope: the slopes of all pairs are computed
UNEXPLAINED = 0.25  # of the growth of a step: less is the measurement's

RISES = 3  # times that `allocated` was higher than before: fewer are no steady growth
TOTAL = 8  # sampled steps below which a rise is not held against what is named

Why = Literal["bounded", "filling", "unsettled", "occasional", "gc-garbage", "optimizer", "host", "few"]


@dataclass(frozen=True, slots=True)
class Movement(Record):
    """How one figure moved over the sampled steps of a phase, in bytes.

    `slope` is what a step adds, `within` whether that is so within each loop alone. `status` is *unknown*
    where there are too few steps.
    """

    figure: result.Figure
    status: result.TrendStatus
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
    kind: result.StepKind
    steps: int
    warmup: int
    sampled: int
    loops: int
    figures: tuple[Movement, ...] = ()

    @property
    def name(self) -> str:
        """`training`, `evaluation`."""
        return result.KIND_NAMES[self.kind]

    @property
    def headline(self) -> str:
        """`training: 20 steps sampled after 3 of warm-up`."""
        if not self.sampled:
            return f"{self.name}: {result.said_steps({self.kind: self.steps})} of warm-up, none sampled"
        loops = f" in {self.loops} loops" if self.loops > 1 else ""
        after = f" after {self.warmup} of warm-up" if self.warmup else ", no warm-up"
        return f"{self.name}: {result.said_steps({self.kind: self.sampled})} sampled{loops}{after}"


@dataclass(frozen=True, slots=True)
class Harmless(Record):
    """Growth that is no drift, and why. `device` and `host` are bytes a step, `total` is what had piled
    up."""

    text: str
    why: Why
    kind: result.StepKind
    device: float
    host: float
    total: int
    born: tuple[result.Site, ...] = ()
    ranks: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """What it is called: what came now and then only may yet be growth."""
        if self.why in ("unsettled", "occasional", "few"):
            return "not settled"
        return "may be filling" if self.why == "filling" else "harmless"


@dataclass(frozen=True, slots=True)
class Rate(Record):
    """What grows in windows of one kind, "" for steps: `each` bytes in one of them, which is `device` bytes a step."""

    window: str
    each: float
    device: float


@dataclass(frozen=True, slots=True)
class Unexplained(Record):
    """`allocated` grew from step to step by `device` bytes more than survivors account for."""

    text: str
    kind: result.StepKind
    device: float
    ranks: tuple[int, ...] = ()


# -- phases --------------------------------------------------------------------------------------------------


def phases(rank: result.RankResult) -> tuple[Phase, ...]:
    """The kinds of steps this rank took, training first."""
    kinds = {kind: [sample for sample in rank.samples if sample.kind == kind] for kind in result.KIND_NAMES}
    return tuple(_phase(rank.rank, kind, samples) for kind, samples in kinds.items() if samples)


def _phase(rank: int, kind: result.StepKind, samples: Sequence[result.Sample]) -> Phase:
    loops = _loops(samples)
    moved = (_movement(figure, loops) for figure in SHOWN)
    sampled = sum(map(len, loops))
    figures = tuple(one for one in moved if one is not None)
    return Phase(rank, kind, len(samples), len(samples) - sampled, sampled, len(loops), figures)


def _loops(samples: Sequence[result.Sample]) -> list[list[result.Sample]]:
    """The sampled steps, parted where another loop begins with its warm-up."""
    runs = itertools.groupby(samples, key=lambda sample: sample.sampled)
    return [list(loop) for sampled, loop in runs if sampled]


def _movement(figure: result.Figure, loops: Sequence[Sequence[result.Sample]]) -> Movement | None:
    series = [[value for s in loop if (value := getattr(s, figure)) is not None] for loop in loops]
    values = [value for one in series for value in one]
    if len(values) < 2:
        return None
    ends = (values[0], values[-1], min(values), max(values))
    long = [one for one in series if len(one) >= FEWEST]
    if len(series) > 1 and long:
        within = [_trend(one) for one in long]
        rising = [slope for status, slope in within if status == "growing"]
        if 2 * len(rising) >= len(within):
            return Movement(figure, "growing", *ends, statistics.median(rising), within=True)
    status, slope = _trend(values)
    return Movement(figure, status, *ends, slope)


def _trend(values: Sequence[int]) -> tuple[result.TrendStatus, float]:
    stride = -(-len(values) // MOST_POINTS)
    status, slope = drifts.moved(values[::stride])
    return status, slope / stride


# -- what is harmless ----------------------------------------------------------------------------------------


def harmless(findings: Sequence[Finding], evidence: Sequence[Evidence]) -> tuple[Harmless, ...]:
    """Every growth that is no drift, that no verdict on `findings` speaks of and that is worth a line, largest first."""
    seen = ((one.rank.rank, *found) for one in evidence for found in _of_rank(findings, one).items())
    merged = over_ranks(seen, lambda found: found.total, len(evidence) > 1)
    return tuple(sorted(merged, key=lambda h: (-h.device, -h.total)))


def _of_rank(findings: Sequence[Finding], one: Evidence) -> dict[tuple[str, str], Harmless]:
    told = _told(findings, one)
    groups: dict[tuple[str, str], list[tuple[result.Drift, result.Holder | None]]] = {}
    for drift in one.rank.drifts:
        keeper = _keeper(drift, one)
        why = _why(drift, keeper, one)
        if why is None or drift in told or _is_in_use(drift, keeper):
            continue
        name = keeper.text if keeper is not None else f"{real(drift.site.file)}:{drift.site.line}"
        groups.setdefault((why, name), []).append((drift, keeper))
    lines = {key: _one_line(key[0], group) for key, group in groups.items()}  # type: ignore[arg-type]
    if not one.leaks() and not any(line.why == "occasional" for line in lines.values()):
        # What is the same under several names is told once.
        few = (_too_few(window) for window in one.rank.windows if _is_open(window))
        lines |= {("few", str(line.total)): line for line in few}
    least = {why: noted(one.rank, min if why in ("occasional", "unsettled") else max) for why, _ in lines}
    return {key: line for key, line in lines.items() if line.total >= least[key[0]]}


def _is_open(window: result.WindowFigures) -> bool:
    """Whether what windows of this kind leave was seen, but not often enough to tell: once, which of calls is the rule, or twice. How
    often loops came round is said above."""
    if window.name.startswith((ROUND, STRETCH)):
        return False
    return window.seen == 2 or (window.seen == 1 and not window.name.startswith(CALLS))


def _too_few(window: result.WindowFigures) -> Harmless:
    more = window.levels[1] - window.levels[0] if len(window.levels) == 2 else window.kept
    once = "once" if window.seen == 1 else "twice"
    few = "of growth from one to the next nothing is said below three (--reach)"
    text = f"{format_bytes(more)} that {per(window.name)} has left: it was seen {once}, and {few}"
    kind: result.StepKind = "eval" if window.name == EVALUATION else "train"
    return Harmless(text, "few", kind, 0.0, 0.0, more, (window.site,))


def _is_in_use(drift: result.Drift, keeper: result.Holder | None) -> bool:
    """Whether it is no more than what is in use at the moment, what one step or two of many windows have made, or what an
    optimizer has for its parameters."""
    if drift.status == "occasional" and not drift.outlived and 0 < drift.events < 2 + bool(drift.windows):
        return True
    return keeper is not None and keeper.scope == "optimizer" and drift.status != "leak"


def _told(findings: Sequence[Finding], one: Evidence) -> set[result.Drift]:
    """What verdicts speak of already, as confirmed growth or as the reason why there is none."""
    told: set[result.Drift] = set()
    if one.rank.besides.cycles:
        told.update(drift for drift in one.rank.drifts if drift.status == "gc-garbage")
    for finding in findings:
        if finding.runtime_claim.kind in ("drift", "cycle"):
            told.update(one.born_at(finding))
            for holder in one.holders(finding):
                told.update(one.drifts_of(holder))
    return told


def _keeper(drift: result.Drift, one: Evidence) -> result.Holder | None:
    """The holder that keeps most of what a site left behind."""
    kept = one.keepers(drift)
    return max(kept, key=lambda pair: pair[0])[1] if kept else None


def _why(drift: result.Drift, keeper: result.Holder | None, one: Evidence) -> Why | None:
    """Why this is no drift; None where it is, or belongs to what is: of a list that grows in an evaluation
    the training sees now and then a piece."""
    growth = one.growth(keeper) if keeper is not None else Share()
    if drift.place == "host":
        return "host" if drift.status == "leak" and not growth.nodes else None
    if growth or any(leak.site == drift.site for leak in one.rank.leaks()):
        return "optimizer" if keeper is not None and keeper.scope == "optimizer" and not growth else None
    return None if drift.status == "leak" else drift.status


def _one_line(why: Why, group: Sequence[tuple[result.Drift, result.Holder | None]]) -> Harmless:
    first, keeper = max(group, key=lambda pair: pair[0].total)
    same = [drift for drift, _ in group if (drift.kind, drift.window) == (first.kind, first.window)]
    total = sum(drift.total for drift in same)
    share = Share.of(Share.of_drift(replace(drift, place="device")) for drift in same)
    host = first.place == "host"
    born = tuple(drift.site for drift in same)[:5]
    text = f"{format_bytes(total)} ({rate(share)}) {_words(why, first, keeper)}"
    device, host_rate = (0.0, share.device) if host else (share.device, 0.0)
    return Harmless(text, why, first.kind, device, host_rate, total, born)


def _words(why: Why, drift: result.Drift, keeper: result.Holder | None) -> str:
    known = keeper is not None and keeper.scope != "unknown"
    held = f"kept by {keeper.text}" if keeper is not None and known else f"born at {place(drift.site)}"
    if why == "host":
        return f"of tensors in host memory, {held}: none of it is on the GPU"
    if why == "optimizer":
        return f"{held}: an optimizer's own state is not counted as drift"
    if why == "gc-garbage":
        return f"born at {place(drift.site)} {drift.reason}"
    return drift.reason if drift.limited else f"{held}: {drift.reason}"


# -- the account ---------------------------------------------------------------------------------------------


def account(evidence: Sequence[Evidence]) -> tuple[Rate, ...]:
    """What grows on the device, by window, as the worst rank has it: from this the head, the verdicts and the exit status are said."""
    ranks = [_rates(one) for one in evidence]
    return max(ranks, key=lambda rates: sum(rate.device for rate in rates), default=())


def _rates(one: Evidence) -> tuple[Rate, ...]:
    found: dict[str, Rate] = {}
    parts = [(d.window, d.per_window or d.bytes_per_step, d.bytes_per_step) for d in one.leaks()]
    parts += [("", left.device, left.device) for left in unexplained([one])]
    for window, each, device in parts:
        known = found.get(window, Rate(window, 0.0, 0.0))
        found[window] = Rate(window, known.each + each, known.device + device)
    return tuple(sorted(found.values(), key=lambda rate: -rate.device))


def unexplained(evidence: Sequence[Evidence]) -> tuple[Unexplained, ...]:
    """Steady growth of `allocated` that survivors, of whatever kind, do not account for."""
    found: dict[result.StepKind, Unexplained] = {}
    for one in evidence:
        for phase in phases(one.rank):
            left = _left_over(phase, one)
            if left <= (found[phase.kind].device if phase.kind in found else 0.0):
                continue
            more = f"allocated grew by {format_bytes(round(left))} {per(phase.name)} step more than what is named here"
            larger = "memory that is in use at the end of a step and gets larger, such as longer batches"
            text = f"{more}: {larger}, or that was allocated outside Python"
            ranks = (one.rank.rank,) if len(evidence) > 1 else ()
            found[phase.kind] = Unexplained(text, phase.kind, left, ranks)
    return tuple(found.values())


def _left_over(phase: Phase, one: Evidence) -> float:
    """Bytes a step of growth that nothing accounts for, and that has not stopped since."""
    moved = next((one for one in phase.figures if one.figure == "allocated"), None)
    # What an evaluation piles up beside a training may go at its end, which is looked at elsewhere.
    beside = phase.kind == "eval" and one.main_kind() != "eval"
    if moved is None or moved.status != "growing" or phase.sampled < TOTAL or beside:
        return 0.0
    own = [s for s in one.rank.samples if s.kind == phase.kind and s.sampled]
    if len(set(itertools.accumulate((s.allocated or 0 for s in own), max))) <= RISES:
        return 0.0
    if moved.within:
        rise, known = moved.slope * (phase.sampled - 1), _named(one.rank, own, phase.kind)
    else:
        rise, known = moved.last - moved.first, _named(one.rank, own, None)
    left = rise - known
    each = left / (phase.sampled - 1) if left > max(UNEXPLAINED * rise, noted(one.rank)) else 0.0
    return 0.0 if one.rank.besides.later.stopped(each, min(TOTAL, phase.sampled)) else each


def _named(rank: result.RankResult, own: Sequence[result.Sample], alone: result.StepKind | None) -> float:
    """What all that was born and is named amounts to between the first and the last of these steps; `alone` of what steps of
    this kind leave."""
    begin, end = own[0].seconds, own[-1].seconds
    between = result.count_steps(s for s in rank.samples if begin < s.seconds <= end)
    total = 0.0
    for drift in rank.drifts:
        if drift.place != "device" or (drift.status == "occasional" and not drift.outlived):
            continue
        if drift.window:
            ends = [w.seconds for w in rank.windows if w.name == drift.window]
            often = max((sum(begin < at <= end for at in one) for one in ends), default=0) + 1  # and a part
            total += drift.per_window * often
        elif alone in (None, drift.kind):
            total += drift.bytes_per_step * (len(own) - 1 if alone else between[drift.kind])
    return total


def unsettled(evidence: Evidence) -> float:
    """Bytes a step that grew on the device over all that was watched, of which it cannot be told whether they go on to."""
    told = [d for d in evidence.rank.drifts if d.status == "unsettled" and d.place == "device"]
    ours = (d for d in told if (keeper := _keeper(d, evidence)) is None or keeper.scope != "optimizer")
    return sum(d.bytes_per_step for d in ours if d.total >= noted(evidence.rank, min))


def noted(rank: result.RankResult, of: Callable[[float, float], float] = max) -> float:
    """Bytes below which growth that is none is not worth a line; where it may be some, the smaller `of` the two measures."""
    peaks = [max(s.peak or 0, s.allocated or 0) for s in rank.samples]
    return of(drifts.NOTED, drifts.NOTED_SHARE * max(peaks, default=0))

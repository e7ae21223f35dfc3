"""What a run costs, and what is saved between two: drift, peak, reserved memory, time."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpulint.runtime.record.result import KIND_NAMES, RankResult, RunResult, StepKind
from gpulint.trial.plan import Gain, Unit
from gpulint.units import format_bytes

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
        yield Cost(f"drift in {name}", "bytes a step", _sum(leaks, "device"))
        yield Cost(f"host drift in {name}", "bytes a step", _sum(leaks, "host"))
        yield from _levels(rank, kind, name)
    if rank.peak is not None:
        yield Cost("peak", "bytes", rank.peak.allocated)
    yield Cost("graph nodes of earlier steps held", "nodes", sum(holder.nodes for holder in rank.holders))
    unused = [
        one.kept or 0 for one in rank.forwards if one.weights and one.grad and one.dead and not one.visited
    ]
    yield Cost("activations kept for nothing", "bytes", sum(unused))  # of one call of each


def _sum(leaks: Sequence[object], place: str) -> float:
    return sum(getattr(one, "bytes_per_step", 0.0) for one in leaks if getattr(one, "place", "") == place)


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
    if first.unit == "nodes":
        least = 1.0
    elif first.name.startswith("reserved"):
        least = float(LEAST_RESERVED)
    elif first.unit == "bytes":
        least = max(LEAST_BYTES, LEAST_SHARE * first.value)
    else:
        least = 1.0
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

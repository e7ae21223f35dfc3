"""What a run costs, and what is saved between two: drift, peak, reserved memory, time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpulint.runtime.parent.evidence import Evidence
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
    evidence = Evidence(rank)
    where = "GPU memory" if evidence.on_device else "memory that would be on the GPU"
    for kind, name in KIND_NAMES.items():
        if not rank.steps(kind):
            continue
        leaks = [drift for drift in rank.drifts if drift.status == "leak" and drift.kind == kind]
        yield Cost(f"{where}, drift in {name}", "bytes a step", _sum(leaks, "device"))
        yield Cost(f"tensors on the host, drift in {name}", "bytes a step", _sum(leaks, "host"))
        nodes = [evidence.growth(h).nodes for h in rank.holders if evidence.kind_of(h) == kind]
        yield Cost(f"autograd nodes, drift in {name}", "nodes a step", sum(nodes))
        yield from _levels(rank, kind, name)
    peaks = [s.peak for s in rank.samples if s.peak is not None]
    if peaks:
        yield Cost("peak", "bytes", max(peaks))


def _sum(leaks: Sequence[object], place: str) -> float:
    return sum(getattr(one, "bytes_per_step", 0.0) for one in leaks if getattr(one, "place", "") == place)


def _levels(rank: RankResult, kind: StepKind, name: str) -> Iterator[Cost]:
    samples = [s for s in rank.samples if s.sampled and s.kind == kind]
    figures: tuple[tuple[str, Callable[[object], int | None]], ...] = (
        (f"peak in {name}", lambda s: s.peak),  # type: ignore[attr-defined]
        (f"reserved in {name}", lambda s: s.reserved),  # type: ignore[attr-defined]
    )
    for label, read in figures:
        values = [value for s in samples if (value := read(s)) is not None]
        if values:
            yield Cost(label, "bytes", max(values))
    durations = tuple(s.duration for s in samples)
    if len(durations) >= FEWEST:
        yield Cost(f"time of a step in {name}", "seconds", statistics.median(durations), durations)


def gains_between(first: RunResult, again: RunResult, after: RunResult) -> tuple[Gain, ...]:
    """What `after` saves and what it costs, compared with two runs of the unchanged script; what is nothing before and after is
    left out."""
    one, two, changed = costs_of(first), costs_of(again), costs_of(after)
    found = []
    for name, cost in one.items():
        if name in changed:
            gain = _gain(cost, two.get(name, cost), changed[name])
            if gain.before or gain.after:
                found.append(gain)
    return tuple(found)


def _gain(cost: Cost, same: Cost, changed: Cost) -> Gain:
    noise = abs(cost.value - same.value)
    moved = abs(cost.value - changed.value)
    if cost.unit == "seconds":
        return _time(cost, same, changed, noise)
    if cost.unit == "nodes a step":
        least = 0.5
    elif cost.name.startswith("reserved"):
        least = float(LEAST_RESERVED)
    elif cost.unit == "bytes":
        least = max(LEAST_BYTES, LEAST_SHARE * cost.value)
    else:
        least = 1.0
    return Gain(cost.name, cost.unit, cost.value, changed.value, noise, moved >= least and moved > 2 * noise)


def _time(cost: Cost, same: Cost, changed: Cost, noise: float) -> Gain:
    """Steps count as faster, or slower, where the middle half of them lies beyond that of both unchanged runs."""
    before = min(cost.value, same.value) if changed.value < cost.value else max(cost.value, same.value)
    moved = abs(before - changed.value)
    counts = moved > max(2 * noise, LEAST_TIME * before) and _apart(cost, changed) and _apart(same, changed)
    return Gain(cost.name, "seconds", before, changed.value, noise, counts)


def _apart(one: Cost, other: Cost) -> bool:
    (low, _, high), (other_low, _, other_high) = (statistics.quantiles(c.values, n=4) for c in (one, other))
    return other_high < low or other_low > high


def gain_text(gain: Gain) -> str:
    """`peak in evaluation 12.1 MiB → 2.3 MiB`."""
    return f"{gain.name} {amount(gain.before, gain.unit)} → {amount(gain.after, gain.unit)}"


def amount(value: float, unit: Unit) -> str:
    """A figure for people."""
    if unit == "seconds":
        return f"{value * 1000:.2f} ms"
    if unit == "nodes a step":
        return f"{value:.0f} a step"
    return format_bytes(round(value)) + (" a step" if unit == "bytes a step" else "")


def pays(gains: Sequence[Gain]) -> bool:
    """Whether anything is saved beyond noise."""
    return any(gain.is_better for gain in gains)

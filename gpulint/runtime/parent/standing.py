"""What a run saw besides the growth of its steps, put together over ranks: idle memory, cycles, host memory that grows.

Pure functions on records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpulint.runtime.parent.evidence import Evidence, over_ranks
from gpulint.runtime.record import drift as drifts
from gpulint.runtime.record.besides import Cycle, ProcessMemory, Untouched
from gpulint.runtime.record.records import Record
from gpulint.runtime.record.result import KIND_NAMES, RankResult, RunResult, StepKind, said_steps
from gpulint.units import format_bytes, plural

STEADY = 0.6  # of pairs of readings rise, less those that fall
LATE = 0.5  # of the slope of the whole, at least, the second half must have
LATE_WORKER = 0.25  # what a worker copies as it reads becomes less, the more it has copied
FEWEST = 5  # steps of a process' own memory, below which nothing is said of it
FEWEST_READINGS = 4  # of another process, the first, which fills it, left out
# Bytes a step: resident memory is coarser than what malloc tells
LEAST_HEAP, LEAST_RSS = (64 * 1024, 1024 * 1024)
LEAST_WORKER, SHARE_WORKER = 64 * 1024, 0.01  # bytes a step, and of its size over what was read
UNTOLD = 0.25  # of the growth: less is what other lines tell


@dataclass(frozen=True, slots=True)
class Idle(Record):
    """Untouched memory, as the rank saw it that has most of it."""

    what: Untouched
    watched: str
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Tied(Record):
    """A cycle, what waits in it a step, and how often the collector came in how many sampled steps."""

    what: Cycle
    per_step: float
    came: int
    steps: int
    freed: int
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HostGrowth(Record):
    """Host memory that grows by `per_step` bytes a step, in no tensor that is known of, or in other processes. `lasts` is False
    where they end with each pass."""

    who: str
    number: int
    first: int
    last: int
    per_step: float
    per_minute: float
    steps: int
    lasts: bool = True
    ranks: tuple[int, ...] = ()


# -- idle memory ---------------------------------------------------------------------------------------------


def idle(run: RunResult) -> tuple[Idle, ...]:
    """Memory that was alive and that nothing touched, worst first, without what is told as growth."""
    held = ((rank, one) for rank in run.ranks for one in _merged(rank))
    seen = ((rank.rank, (one.text, one.file, one.line), Idle(one, watched_text(rank))) for rank, one in held)
    found = over_ranks(seen, lambda one: one.what.bytes, len(run.ranks) > 1)
    return tuple(sorted(found, key=lambda one: -one.what.bytes))


def _merged(rank: RankResult) -> list[Untouched]:
    """Those with the same name as one. What grows is told elsewhere, with all that it holds."""
    evidence = Evidence(rank)
    growing = {(held.file, held.line) for held in rank.holders if evidence.growth(held)}
    found: dict[str, Untouched] = {}
    for one in rank.besides.untouched:
        if (one.file, one.line) in growing:
            continue
        known = found.get(one.text)
        if known is not None:
            freed = None if known.freed is None or one.freed is None else known.freed + one.freed
            one = replace(known, bytes=known.bytes + one.bytes, count=known.count + one.count, freed=freed)
        found[one.text] = one
    return list(found.values())


def watched_text(rank: RankResult) -> str:
    """`4 training and 2 evaluation steps`; empty where none were."""
    known: dict[StepKind, int] = {kind: rank.besides.watched.get(kind, 0) for kind in KIND_NAMES}
    return said_steps(known) if any(known.values()) else ""


# -- cycles --------------------------------------------------------------------------------------------------


def tied(run: RunResult) -> tuple[Tied, ...]:
    """Memory that waits for the collector, worst first."""
    seen = []
    for rank in run.ranks:
        waits = sum(d.bytes_per_step for d in rank.garbage)
        whole = sum(one.bytes for one in rank.besides.cycles)
        came = rank.besides.collections
        for one in rank.besides.cycles if waits else ():
            share, often = waits * one.bytes / whole, came.partial + came.full
            now = Tied(one, share, often, rank.steps(), came.freed)
            seen.append((rank.rank, (*one.chain, one.cut), now))
    found = over_ranks(seen, lambda one: one.per_step, len(run.ranks) > 1)
    return tuple(sorted(found, key=lambda one: -one.per_step))


# -- host memory ---------------------------------------------------------------------------------------------


def host_growth(run: RunResult, told: float) -> tuple[HostGrowth, ...]:
    """Host memory that grows, of the script's own processes and of those that they start. `told` bytes a step are told as what holders
    keep."""
    several = len(run.ranks) > 1
    grown = ((rank.rank, one) for rank in run.ranks for one in (*_own(rank, told), *_others(rank)))
    found = [replace(one, ranks=(rank,) if several else ()) for rank, one in grown]
    return tuple(sorted(found, key=lambda one: -one.per_step))


def _own(rank: RankResult, told: float) -> Iterator[HostGrowth]:
    kind = Evidence(rank).main_kind()
    samples = [sample for sample in rank.samples if sample.kind == kind and sample.sampled]
    seconds = Evidence(rank).step_seconds()
    if len(samples) < FEWEST or not seconds:
        return
    tensors = [sample.host_tensors or 0 for sample in samples]
    if rank.environment.device == "cpu":
        tensors = [size + (sample.allocated or 0) for size, sample in zip(tensors, samples, strict=True)]
    heap = [sample.heap for sample in samples if sample.heap is not None]
    resident = [s.rss - size for size, s in zip(tensors, samples, strict=True) if s.rss is not None]
    for values, least in ((heap, LEAST_HEAP), (resident, LEAST_RSS)):
        slope = _steady(values) if len(values) == len(samples) else 0.0
        if slope >= least and slope - told > UNTOLD * slope:
            left = slope - told
            first, last = resident[0], resident[-1]
            yield HostGrowth("this process", 1, first, last, left, left * 60 / seconds, len(samples))
            return


def _steady(values: Sequence[int], least: float = LATE) -> float:
    """What each value adds, where most pairs rise, to the end; 0 where not."""
    slope = drifts.theil_sen(values)
    late = drifts.theil_sen(values[len(values) // 2 :])
    return slope if slope > 0 and drifts.rising(values) >= STEADY and late >= least * slope else 0.0


def _others(rank: RankResult) -> Iterator[HostGrowth]:
    """A DataLoader's workers together, and each other process."""
    grown = [(one, growth) for one in rank.besides.processes if (growth := _of_process(one)) is not None]
    loaders = [(one, growth) for one, growth in grown if one.loader]
    if loaders:
        first = loaders[0][0]
        number = first.workers if first.lasts else max(len(loaders), _at_once(rank.besides.processes))
        scale = number / len(loaders)
        yield _sum("DataLoader worker", number, scale, loaders)
    for one, growth in grown:
        if not one.loader:
            yield _sum(f"process `{one.name}`" if one.name else "another process", 1, 1.0, [(one, growth)])


def _at_once(processes: Sequence[ProcessMemory]) -> int:
    """How many workers there were at one time: those of one pass."""
    moments = [moment for one in processes if one.loader for moment in one.steps]
    return max((moments.count(moment) for moment in set(moments)), default=1)


def _of_process(one: ProcessMemory) -> tuple[float, float] | None:
    """Bytes a step and a minute, of the readings after the first; None where it does not grow."""
    sizes, steps, seconds = one.sizes[1:], one.steps[1:], one.seconds[1:]
    if len(sizes) < FEWEST_READINGS or not _steady(sizes, LATE_WORKER):
        return None
    slope = drifts.slope_of(list(zip(steps, sizes, strict=True)))
    if slope < LEAST_WORKER or sizes[-1] - sizes[0] < SHARE_WORKER * sizes[0]:
        return None
    return slope, (sizes[-1] - sizes[0]) * 60 / max(seconds[-1] - seconds[0], 1e-9)


def _sum(
    who: str, number: int, scale: float, parts: Sequence[tuple[ProcessMemory, tuple[float, float]]]
) -> HostGrowth:
    first, last = (round(scale * sum(one.sizes[at] for one, _ in parts)) for at in (1, -1))
    per_step, per_minute = (scale * sum(growth[at] for _, growth in parts) for at in (0, 1))
    steps = max(one.steps[-1] - one.steps[1] for one, _ in parts)
    lasts = all(one.lasts for one, _ in parts)
    return HostGrowth(who, number, first, last, per_step, per_minute, steps, lasts)


# -- in words ------------------------------------------------------------------------------------------------


def idle_text(one: Idle) -> str:
    """`2.00 MiB in 4 tensors that no forward, backward or optimizer of 4 training steps read or wrote; …`."""
    what = one.what
    size = f"{format_bytes(what.bytes)} in {plural(what.count, 'tensor')}"
    said = f"{size} that no forward, backward or optimizer of {one.watched} read or wrote"
    if not what.written or what.freed is None:
        return said
    if what.freed >= what.bytes:
        return f"{said}; `del {what.written}` gives all of it back"
    others = f", the rest is held by {' and '.join(what.others)} too" if what.others else ""
    return f"{said}; `del {what.written}` alone gives back {format_bytes(what.freed)}{others}"


def host_text(one: HostGrowth) -> str:
    """`memory of 2 DataLoader workers grows by 1.20 MiB a step (4.10 GiB a minute at this speed), …`."""
    rate = f"{format_bytes(round(one.per_step))} a step ({format_bytes(round(one.per_minute))} a minute at this speed)"
    if one.who == "this process":
        return f"memory grows by {rate}, in no tensor that is known of"
    who = plural(one.number, one.who) if one.number > 1 else one.who
    ends = "" if one.lasts else "; they are made anew in each pass"
    span = f"{format_bytes(one.first)} to {format_bytes(one.last)} over {one.steps} steps"
    return f"memory of {who} grows by {rate}, {span}{ends}"

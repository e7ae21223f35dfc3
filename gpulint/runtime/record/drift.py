"""What is drift, and what only looks like it. Pure functions on numbers: no torch, no clock, no process.

Survivors decide, slopes only confirm. A *survivor* is memory born in one sampled step and still alive at the
end, at least some steps later; the first-to-last difference and the slope of `allocated` are both positive on
many healthy loops. A *window* is a run of steps of one kind. Births are known per interval: for a probe that
sees each birth every step is an interval, for one that looks now and then an interval covers several steps.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpulint.runtime.record import result
from gpulint.runtime.record.besides import STOPPED
from gpulint.runtime.record.result import Drift, Holder, Status, StepKind
from gpulint.units import format_bytes

FIGURES: tuple[result.Figure, ...] = ("allocated", "reserved", "host_tensors", "rss", "heap")

EVERY_STEP = 0.8  # share of intervals that makes a leak of every step
BLOCKS = 12  # of which the means are compared: what is in use goes up and down within them
SLOWER = 2.0  # standard errors by which a stretch must add less in the second half: nineteen times in twenty chance does not do it
STILL = 0.6  # of the pairs of readings rise, less those that fall, where it grows still
SLOPE = 0.5  # the site's live bytes must rise by at least this part of its bytes per step
LATE = 5  # intervals with survivors, up to the last one, that make a leak of what began within the window
FEWEST = 3  # intervals, or regular events, below which nothing is called a leak
# The same for windows that were outlived: each is long enough for what it has in use to go
FEWEST_WINDOWS = 2
# Of the steps in which the site's live bytes must be more than before to have grown in every one
RISING = 0.4
STEADY = 0.9  # of the pairs of readings must rise where it is the size of what is in use that grows
FEWEST_LEVELS = 6  # readings for that, or where a variable's new value is made of the old one
FEWEST_RENEWED = 3
# Bytes, and the part of the peak, below which growth that is none is not told
NOTED, NOTED_SHARE = (64 * 1024, 0.01)
QUANTUM = 512  # bytes; what the caching allocator rounds to
SEGMENT = 20 * 1024 * 1024  # bytes; what reserved may grow by for a single block that finds no room

EXPANDABLE = (
    "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_ALLOC_CONF from torch 2.12 on), "
    "or run the longest batch first"
)


def rounded(size: int) -> int:
    """The bytes of the block that the caching allocator would give for so many."""
    return -(-size // QUANTUM) * QUANTUM


@dataclass(frozen=True, slots=True)
class Births:
    """What one site left behind in one window: bytes and blocks by interval number.

    `garbage` are bytes by interval that only `gc.collect()` freed. `levels` are the site's live bytes after some steps
    of the window, as (step, bytes), where known; `now` are all that are alive of what was born in it or later.
    """

    site: result.Site
    place: result.Place
    alive: Mapping[int, int]
    counts: Mapping[int, int]
    garbage: Mapping[int, int] = field(default_factory=dict)
    levels: Sequence[tuple[int, int]] | None = None
    now: int = 0


def theil_sen(values: Sequence[float]) -> float:
    """The median of the slopes between all pairs of points at x = 0, 1, 2, …; 0.0 for fewer than two
    points."""
    return slope_of(list(enumerate(values)))


def slope_of(points: Sequence[tuple[int, float]]) -> float:
    """The same of points (x, y) with different x."""
    slopes = [(b - a) / (j - i) for (i, a), (j, b) in itertools.combinations(points, 2)]
    return statistics.median(slopes) if slopes else 0.0


def rising(values: Sequence[float]) -> float:
    """The part of all ordered pairs that rise, less the part that fall: 1.0 for steady growth (Kendall's tau
    against time)."""
    signs = [(later > earlier) - (later < earlier) for earlier, later in itertools.combinations(values, 2)]
    return sum(signs) / len(signs) if signs else 0.0


def slower(values: Sequence[float]) -> float:
    """By how many standard errors the values add less from one to the next in their second half than in the first; 0 where that cannot be
    said (Welch's t)."""
    size = max(1, len(values) // BLOCKS)
    blocks = [statistics.fmean(values[at : at + size]) for at in range(0, len(values) - size + 1, size)]
    added = [b - a for a, b in itertools.pairwise(blocks)]
    halves = added[: len(added) // 2], added[len(added) // 2 :]
    if min(map(len, halves)) < FEWEST:
        return 0.0
    less = statistics.mean(halves[0]) - statistics.mean(halves[1])
    error = sum(statistics.variance(half) / len(half) for half in halves) ** 0.5
    return less / error if error else 0.0


def is_regular(events: Sequence[int], eligible: Sequence[int], edges: Sequence[int]) -> bool:
    """Whether events recur over all of the `eligible` intervals, so that more can be expected.

    Either they come at equal distances (give or take one step), up to both ends, one of them left out; or they come
    in at least half of the intervals and are no rarer in the second half than in the first. A cache that fills up
    has ever fewer, a rolling window has them only at the end. `edges` are the intervals' borders in steps.
    """
    if len(events) < FEWEST + 1:
        return False
    spans = [(edges[event], edges[event + 1] - 1) for event in events]
    start, end = edges[eligible[0]], edges[eligible[-1] + 1]
    if _evenly(spans, start, end):
        return True
    # One event may be no leak's: an address that was in use at every reading by chance.
    others = ([*spans[:i], *spans[i + 1 :]] for i in range(len(spans)))
    if len(spans) > 2 * FEWEST - 1 and any(_evenly(rest, start, end) for rest in others):
        return True
    first, last = eligible[0], eligible[-1] + 1
    early = sum(event < (first + last) / 2 for event in events)
    late = len(events) - early
    return 2 * len(events) >= last - first and late >= early and early >= 0.6 * late


def _evenly(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one event in each span (first and last step in which it may lie) can make equal distances."""
    pairs = list(itertools.pairwise(spans))
    least = max(later[0] - earlier[1] for earlier, later in pairs)
    most = min(later[1] - earlier[0] for earlier, later in pairs)
    if least - 1 > most:
        return False
    return max(spans[0][0] - start, end - spans[-1][1]) <= max(least, most) + 1


def judge(
    births: Births, edges: Sequence[int], kind: StepKind, age: int = 2, window: str = ""
) -> Drift | None:
    """What the site's survivors mean, or None if there are none.

    `window` is the name of the stretches that are judged, "" for steps.

    `edges` are the intervals' borders in steps from the window's start (0 … n); interval i covers the steps
    from edges[i] up to edges[i + 1]. Only intervals that ended `age` steps before the window's end are
    judged: what is younger may just be in use.
    """
    eligible = [i for i in range(len(edges) - 1) if edges[i + 1] <= edges[-1] - age]
    if not eligible:
        return None
    look = _Look(births, edges, kind, window)
    found = look.survived(eligible)
    if found is None or found.status not in ("leak", "bounded"):
        found = look.enlarged() or found
    return None if found is None else replace(found, window=window)


@dataclass(frozen=True, slots=True)
class _Look:
    """One site in one window, as `judge` is given them."""

    births: Births
    edges: Sequence[int]
    kind: StepKind
    window: str

    @property
    def levels(self) -> Sequence[tuple[int, int]]:
        return self.births.levels or ()

    def drift(
        self, status: Status, total: int, count: int, share: float, steps: int, reason: str, events: int = 0
    ) -> Drift:
        births, kind = self.births, self.kind
        slope = None if births.levels is None else slope_of(self.levels)
        figures = (total / steps, share, steps, total, count, slope, reason)
        return Drift(births.site, kind, births.place, status, *figures, events=events)

    def survived(self, eligible: list[int]) -> Drift | None:
        births, edges = self.births, self.edges
        alive = {i: births.alive[i] for i in eligible if births.alive.get(i, 0) > 0}
        garbage = sum(births.garbage.get(i, 0) for i in eligible)
        total = sum(alive.values())
        if not total:
            if garbage < QUANTUM:
                return None
            collected = [i for i in eligible if births.garbage.get(i, 0) > 0]
            reason = "was in reference cycles; gc.collect() freed it, so it goes when Python next collects"
            share = len(collected) / len(eligible)
            return self.drift("gc-garbage", garbage, len(collected), share, self.steps(eligible), reason)
        events = sorted(alive)
        late = [i for i in eligible if i >= events[0]]
        after_ends = self.window and self.comes_after_ends(events, eligible, late, total)
        if after_ends or self.begins_late(events, eligible, late, total):
            eligible = late
        each = statistics.median_low(alive.get(i, 0) / (edges[i + 1] - edges[i]) for i in eligible)
        status, reason = self.status(events, eligible, each, self.mean(alive, eligible))
        count, share = sum(births.counts.get(i, 0) for i in alive), len(alive) / len(eligible)
        return self.drift(status, total, count, share, self.steps(eligible), reason, len(events))

    def rises(self) -> list[int]:
        """The readings after which more was alive, where they come at regular distances and there was never less."""
        pairs = list(itertools.pairwise(amount for _, amount in self.levels))
        found = [at for at, (before, after) in enumerate(pairs) if after > before]
        regular = is_regular(found, range(len(pairs)), [step for step, _ in self.levels])
        return found if regular and all(after >= before for before, after in pairs) else []

    def has_stopped(self, each: float) -> bool:
        """Whether what is alive has grown little in the second half: the site goes on, and what it makes takes the place of other."""
        late = self.levels[len(self.levels) // 2 :]
        if len(self.levels) < 2 * FEWEST_LEVELS:
            return False
        (start, low), (end, high) = late[0], late[-1]
        return high - low < STOPPED * each * (end - start) and slope_of(late) < STOPPED * each

    def mean(self, alive: Mapping[int, int], eligible: Sequence[int]) -> float:
        """Bytes a step, without the stretch that has left most: what is set up once, a workspace for cuBLAS, may be a thousand times
        what each of the others leaves."""
        most = max(alive, key=alive.__getitem__)
        others = [i for i in eligible if i != most] or eligible
        return sum(alive.get(i, 0) for i in others) / self.steps(others)

    def steps(self, eligible: Sequence[int]) -> int:
        return sum(self.edges[i + 1] - self.edges[i] for i in eligible)

    def enlarged(self) -> Drift | None:
        """Growth without survivors: what is in use is replaced by something larger each time, as `torch.cat` does."""
        amounts = [alive for _, alive in self.levels]
        rise = amounts[-1] - amounts[0] if amounts else 0
        late = amounts[len(amounts) // 2 :] if len(amounts) >= 2 * FEWEST_LEVELS else amounts
        if len(amounts) < FEWEST_RENEWED or rise < QUANTUM * len(amounts) or rising(amounts) < STEADY:
            return None
        if rising(late) < STEADY or self.births.now < rise:  # it has its size by now, or was let go of since
            return None
        steps, reason = self.edges[-1] - self.edges[0], "is replaced by something larger each time"
        total = round(slope_of(self.levels) * steps)
        found = self.drift("leak", total, len(amounts), 1.0, steps, reason)
        return replace(found, enlarged=True, times=amounts[-1] / (min(filter(None, amounts), default=0) or 1))

    def begins_late(self, events: list[int], eligible: list[int], late: list[int], total: int) -> bool:
        """Whether the site leaks from some step of the window on, and not before. A rolling window has survivors at the end
        alone as well, but what is alive does not rise with them."""
        if late[0] == eligible[0] or len(late) < LATE or len(events) < EVERY_STEP * len(late):
            return False
        before = [alive for step, alive in self.levels if step <= self.edges[late[0]]]
        return bool(before) and self.levels[-1][1] - max(before) >= SLOPE * total

    def comes_after_ends(self, events: list[int], eligible: list[int], late: list[int], total: int) -> bool:
        """Whether what windows leave is made between the end of one and the beginning of the next: the first has none then, and
        what is alive rises with each other. Where something is kept for some windows alone, it rises no more."""
        after = [alive for step, alive in self.levels if step >= self.edges[late[0]]]
        rises = all(b - a >= SLOPE * total / len(late) for a, b in itertools.pairwise(after))
        in_each = len(events) == len(late) >= FEWEST_WINDOWS
        return late[0] == eligible[0] + 1 and in_each and bool(after) and rises

    def status(self, events: list[int], eligible: list[int], each: float, mean: float) -> tuple[Status, str]:
        levels, edges = self.births.levels, self.edges
        if len(eligible) < (FEWEST_WINDOWS if self.window else FEWEST):
            return "occasional", f"only {len(eligible)} stretches could be judged; run more steps"
        every = len(events) >= EVERY_STEP * len(eligible)
        if not every and not is_regular(events, eligible, edges):
            seen = f"survived from {len(events)} of {len(eligible)} stretches"
            events = self.rises()  # an address that is taken again is taken for born again
            if not events:
                return "occasional", f"{seen}, without regularity"
        if every and levels is not None and len(levels) >= FEWEST_RENEWED + 1:
            # the first reading is of before the first stretch
            first = max(1, len(levels) // 2) if len(levels) >= FEWEST_LEVELS else 1
            if slope_of(levels[first:]) < SLOPE * each:
                return "bounded", "stopped growing within the sampled steps"
            since = [alive for step, alive in levels if step >= edges[eligible[0]]]
            if not self.window and _rises(since) < RISING:
                return "occasional", "grew in few of the steps, however many its survivors seem to come from"
        if self.has_stopped(mean):
            return "bounded", "stopped growing within what was seen"
        if every:
            return "leak", f"survivors from {len(events)} of {len(eligible)} stretches"
        gaps = [b - a for a, b in itertools.pairwise(events)]
        return "leak", f"survivors at regular intervals, about every {statistics.median(gaps):g} stretches"


def _rises(amounts: Sequence[int]) -> float:
    """The part of the readings that are higher than the one before."""
    pairs = list(itertools.pairwise(amounts))
    return sum(later > earlier for earlier, later in pairs) / len(pairs) if pairs else 1.0


def less_set_up(drifts: Sequence[Drift], holders: Sequence[Holder]) -> tuple[list[Drift], list[Holder]]:
    """Take back what one stretch alone has made and nothing of Python's reaches, where there were several: libraries set it up
    once, a workspace for cuBLAS at the first matrix product of a thread, say. It is no growth, and stands at the site of what may be."""
    lost = [(one.place, held) for one in holders if one.scope == "unknown" for held in one.births]
    once = {(held.site, place): held for place, held in lost if held.stretches == 1}
    left = []
    for drift in drifts:
        held = once.get((drift.site, drift.place))
        if held is None or drift.status != "leak" or drift.enlarged or drift.events < 2:
            left.append(drift)
        elif drift.total <= held.bytes:
            reason = "was set up once, by no tensor of the script's"
            left.append(replace(drift, status="occasional", reason=reason))
        else:
            total, number = drift.total - held.bytes, drift.count - held.count
            part = total / drift.total
            size, slope = drift.bytes_per_step * part, None if drift.slope is None else drift.slope * part
            left.append(replace(drift, total=total, count=number, bytes_per_step=size, slope=slope))
    kept = []
    for holder in holders:
        births = tuple(held for held in holder.births if once.get((held.site, holder.place)) is not held)
        if len(births) < len(holder.births):
            holder = replace(holder, births=births, bytes=sum(held.bytes for held in births))
        if births or holder.scope != "unknown":
            kept.append(holder)
    return left, kept


def settle(
    drifts: Sequence[Drift], holders: Sequence[Holder], room: int | None = None, inputs: float = 1.0
) -> list[Drift]:
    """Take back what a limit explains: leaks of which at least nine tenths are in containers that cannot grow for ever.

    A container is weighed as it will be when it is full: one that does not fit into the `room` (bytes; None where that is not
    known) is no limit, nor is one that keeps graphs or networks by what was meant to be a value. What was replaced by something
    larger a few times alone must have been made of what it replaced.
    """
    held = [(one.site, one.bytes, holder) for holder in holders for one in holder.births]
    renewed: Counter[result.Site] = Counter()
    for site, size, holder in held:
        renewed[site] += size if holder.renews else -size
    drifts = [d for d in drifts if not d.enlarged or d.count >= FEWEST_LEVELS or renewed[d.site] > 0]
    lasting = {site for site, _, holder in held if holder.scope not in ("local", "unknown")}
    drifts = [
        replace(d, status="filling", reason=f"{d.reason}, as large as the input of networks, which grows")
        if d.enlarged and d.status == "leak" and d.site not in lasting and d.times <= inputs**2 > 1
        else d
        for d in drifts
    ]
    limits = [holder for holder in holders if holder.bound is not None or holder.limit]
    return [_settled(one, [h for h in limits if _keeps(h, one)], room) for one in drifts]


def going_on(one: Drift, levels: Sequence[tuple[int, int]]) -> Drift:
    """What comes without regularity, and of which more is alive all the time, in the second half as well: it may be growth."""
    amounts = _amounts(levels)
    if one.status != "occasional" or one.events <= FEWEST or not amounts:
        return one
    rise, late = amounts[-1] - amounts[0], amounts[-1] - amounts[len(amounts) // 2]
    if rising(amounts) < STILL or late <= 0 or late < STOPPED * rise / 2:
        return one
    return replace(one, status="unsettled", reason=f"{one.reason}, and more of it all the time")


def refilled(one: Drift, holders: Sequence[Holder], levels: Sequence[tuple[int, int]]) -> Drift:
    """What grows ever more slowly in a dict whose keys come again: they may be so many and no more."""
    keepers = [h for h in holders if h.refilled and _keeps(h, one)]
    slows = one.status in ("leak", "unsettled") and slower(_amounts(levels)) >= SLOWER
    if not slows or _kept(one, keepers) < 0.9 * one.total:
        return one
    reason = f"kept by {keepers[0].text}, whose keys come again with new values, and others ever more seldom"
    return replace(one, status="filling", reason=reason, limited=True)


def _amounts(levels: Sequence[tuple[int, int]]) -> list[int]:
    return [alive for _, alive in levels]


def _kept(drift: Drift, holders: Sequence[Holder]) -> int:
    return sum(holder.kept_of(drift.site) for holder in holders)


def _keeps(holder: Holder, drift: Drift) -> bool:
    return holder.place == drift.place and holder.kept_of(drift.site) > 0


def _settled(drift: Drift, keepers: Sequence[Holder], room: int | None) -> Drift:
    if drift.status not in ("leak", "unsettled", "occasional") or _kept(drift, keepers) < 0.9 * drift.total:
        return drift
    limit = max(keepers, key=lambda h: h.bytes)
    by_code = bool(limit.limit)  # of the script's, and not by what it is
    if drift.enlarged and (limit.slots or not by_code):
        return drift
    if by_code and (drift.status == "occasional" or limit.pins == "graph"):
        return drift
    what = f"which {limit.limit}" if by_code else f"which holds at most {limit.bound}"
    reason = f"kept by {limit.text}, {what}"
    full = _when_full(limit)
    if full > limit.bytes:
        reason += f": {format_bytes(full)} then"
    pins = limit.pins if full >= NOTED and not by_code else ""
    if pins or (room is not None and full > room):
        card = f", of {format_bytes(room)} that there are" if room is not None and full > room else ""
        what = f"; its entries keep whole {pins}s" if pins else ""
        return replace(drift, status="leak", reason=f"{reason}{card}{what}", limited=True)
    if by_code and (limit.slots or limit.bound is None or (limit.length or 0) < limit.bound):
        return replace(drift, status="filling", reason=f"{reason}; it still fills", limited=True)
    return replace(drift, status="bounded", reason=reason, limited=True)


def _when_full(holder: Holder) -> int:
    """Bytes that a container with a most number of entries keeps when it has them."""
    each = holder.entry or holder.bytes / max(1, holder.length or 1)
    return round(each * (holder.bound or 0))


def moved(values: Sequence[int]) -> tuple[result.TrendStatus, float]:
    """How a figure moved, cautiously: growing only if most pairs of points rise; and its slope."""
    slope, steadiness = theil_sen(values), rising(values)
    if len(values) < 5:
        return "unknown", slope
    if abs(slope) >= 1 and abs(steadiness) >= 0.6:
        return "growing" if slope > 0 else "shrinking", slope
    return "flat", slope


def trends(kind: StepKind, samples: Sequence[result.Sample]) -> list[result.Trend]:
    """The trend of every figure that was measured in the window's samples (warm-up left out)."""
    found = []
    for figure in FIGURES:
        values = [value for sample in samples if (value := getattr(sample, figure)) is not None]
        if len(values) == len(samples) and len(values) >= 2:
            one = result.Trend(figure, kind, *moved(values), values[0], values[-1], len(values))
            found.append(_fragmentation(one, samples) if figure == "reserved" else one)
    return found


def _fragmentation(reserved: result.Trend, samples: Sequence[result.Sample]) -> result.Trend:
    """Reserved memory that still grows in the window's second half while allocated does not, neither at the steps' ends nor within
    them."""
    half = len(samples) // 2
    amounts = [s.reserved or 0 for s in samples]
    late = amounts[-1] - amounts[half]
    allocated, peaks = [s.allocated or 0 for s in samples], [s.peak or 0 for s in samples]
    slope = max(0.0, theil_sen(allocated)) * (len(samples) - 1 - half)
    needed = max(slope, allocated[-1] - allocated[half], max(peaks[half:]) - max(peaks[:half], default=0))
    if len(samples) < 5 or late <= SEGMENT + 2 * needed:
        return reserved
    grew = f"{(amounts[-1] - amounts[0]) / (1 << 20):.2f} MiB"
    reason = f"reserved grew by {grew} while allocated stayed: freed blocks do not fit the next requests"
    return replace(reserved, status="fragmentation", reason=reason, advice=EXPANDABLE)

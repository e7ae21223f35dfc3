"""The steps of each kind as they are counted: boundaries, samples, and what looks at them have found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import FrameType
from typing import Any, NamedTuple

from gpulint.runtime.record.besides import Later
from gpulint.runtime.record.drift import EVERY_STEP, FEWEST, FEWEST_WINDOWS
from gpulint.runtime.record.result import (
    Drift,
    Figures,
    Holder,
    Part,
    Place,
    Sample,
    Site,
    StepKind,
    WindowFigures,
)

EVALUATION = "evaluation"  # the name of those windows, beside a training
ROUND = "round of"  # how the names of loops' windows begin
STRETCH = "stretch of"  # the same of so many steps one after the other, after the sampled ones
NAMED = attrgetter("file", "line", "variable", "owner")  # what tells a holder from others
GROWING = ("leak", "filling", "unsettled")
NO_FURTHER = "grew no further in"  # how the reason begins why growth is none that has stopped
GONE = 0.5  # of what leaked: where less is left, it was let go of


class Mark(NamedTuple):
    """One reading of everything. `parts` are those since the reading before: each but the last ended with a backward."""

    seconds: float
    figures: Figures
    sequence: int  # number of the next autograd node
    parts: tuple[Part, ...] = ()


class View(NamedTuple):
    """What one look is at: steps, or windows, between `boundaries` (marks; the first is the start).

    Memory younger than `age` of them is left out. `frames` are searched besides the running ones. A `passing` look, which
    others will follow, saves time where nothing leaks: it does not search for garbage then, nor for holders. One that is not
    the `last` searches for holders of what leaks and of autograd nodes, and leaves it to the last to say who keeps the rest.
    `window` is the name of the windows, "" for steps."""

    kind: StepKind
    boundaries: tuple[int, ...]
    age: int
    frames: tuple[FrameType, ...] = ()
    passing: bool = False
    last: bool = True
    window: str = ""

    @property
    def judged_until(self) -> int:
        """The mark up to which what was born is judged."""
        return self.boundaries[-1 - self.age] if len(self.boundaries) > self.age else self.boundaries[0]


class Window(NamedTuple):
    """What one look at one run of steps found; `judged` are the marks between which births were."""

    drifts: list[Drift]
    holders: list[Holder]
    steps: int
    judged: tuple[int, int] = (0, 0)


@dataclass(slots=True, eq=False)
class Span:
    """One kind of window, as `Windows` follows them: the mark at which the first one `begun`, those at which each has ended, and
    what was `allocated` then. `first` is how many steps had ended when it began, `window` what the last look has found. One that
    `is_open` is about to come round again, and was seen too seldom. `steps` are those in one, on average."""

    name: str
    site: Site
    begun: int
    first: int
    ends: list[int] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # of all ends, those without a reading too
    may_leak: bool = False
    is_open: bool = False
    steps: float = 0.0
    kept: int = 0  # bytes of earlier windows that were there when the last one ended
    settled: int = 0  # the same at the last look
    due: int = FEWEST  # ends at which it is judged next
    window: Window | None = None

    def figures(self) -> WindowFigures:
        """As the result has them."""
        levels, seconds, judged = tuple(self.levels), tuple(self.seconds), self.window is not None
        seen = len(self.ends)
        return WindowFigures(self.name, self.site, seen, levels, seconds, judged, self.kept, self.is_open)


@dataclass(slots=True, eq=False)
class Series:
    """The steps of one kind so far: their boundaries as mark numbers, and how many of them are warm-up."""

    kind: StepKind
    count: int = 0
    warmup: int = 0
    warm: bool = False
    boundaries: list[int] = field(default_factory=list)  # of the window: its start and every step's end
    samples: list[Sample] = field(default_factory=list)
    sampled: int = 0
    window: Window | None = None
    past: list[Window] = field(default_factory=list)  # of earlier loops
    begun: int = 0  # `count` when the present loop began
    state_sizes: list[int] = field(default_factory=list)  # of the optimizers, after each step of warm-up

    @property
    def windows(self) -> list[Window]:
        """What was found in earlier loops, and in the present one."""
        return [*self.past, *([self.window] if self.window is not None else [])]

    def revise(self, anew: Callable[[Window], Window]) -> None:
        """See all that was found anew."""
        self.past = [anew(window) for window in self.past]
        self.window = self.window and anew(self.window)

    def archive(self) -> None:
        """The present loop is over: what was found in it stays, its steps are not joined with those to
        come."""
        self.past, self.window = self.windows, None

    def begin_anew(self) -> None:
        """What comes is not measured against what was: it warms up again."""
        self.archive()
        self.boundaries, self.warm, self.begun = [], False, self.count
        self.state_sizes.clear()


def sample_of(marks: list[Mark], series: Series, previous: int, mark: int, sampled: bool) -> Sample:
    """The sample of the step between two marks (`previous` is -1 for the run's start)."""
    reading = marks[mark]
    begin = marks[previous].seconds if previous >= 0 else 0.0
    figures = reading.figures.by_name()
    within = marks[previous + 1 : mark + 1]
    figures["peak"] = max((top for one in within if (top := one.figures.peak) is not None), default=None)
    took = reading.seconds - begin
    return Sample(series.count, series.kind, sampled, reading.seconds, took, _parts(within), **figures)


def _parts(marks: Iterable[Mark]) -> tuple[Part, ...]:
    """The parts of a step. Readings within it part nothing; one backward alone tells no more than the step."""
    found: list[Part] = []
    parted = True
    for mark in marks:
        for part in mark.parts:
            found.append(part if parted else Part(max(found.pop().peak, part.peak), part.allocated))
            parted = True
        parted = not mark.parts
    return tuple(found) if len(found) > 2 else ()


def released(before: Window, now: Window, steps: int, fell: int, last: Later | None = None) -> Window:
    """The window as it stands `steps` steps later: what leaked and was mostly let go of since is bounded. What is replaced by
    something larger each time is let go of each time: only that what is allocated `fell` by its bytes shows that it is gone. So is what
    has stopped growing, where nothing was let go of that may hide it: in the `last` stretch of these steps all grew by less."""
    left = {(d.site, d.place): d for d in now.drifts}
    drifts = []
    for one in before.drifts:
        later = left.get((one.site, one.place))
        left_of_it = one.total - fell if one.enlarged else later.total if later else 0
        if one.status in GROWING and left_of_it < GONE * one.total:
            reason = f"was let go of within {steps} more steps of the same loop"
            one = replace(one, status="bounded", reason=reason, limited=False)
        drifts.append(one)
    if drifts == before.drifts and last is not None:
        reason = f"{NO_FURTHER} {last.steps} more steps of the same loop"
        told: dict[str, Any] = {"status": "bounded", "reason": reason, "limited": False}
        ended = [one.status in GROWING and last.stopped(one.bytes_per_step) for one in drifts]
        drifts = [replace(one, **told) if over else one for one, over in zip(drifts, ended, strict=True)]
    kept = {(d.site, d.place) for d in drifts if d.status in GROWING}
    nodes = [(NAMED(later), later.nodes) for later in now.holders]
    holders = [
        held
        for held in before.holders
        if any((birth.site, held.place) in kept for birth in held.births)
        or any(name == NAMED(held) and number >= GONE * held.nodes > 0 for name, number in nodes)
        or (held.births and not held.nodes)
    ]
    return before._replace(drifts=drifts, holders=holders)


def spread(window: Window, steps: float) -> Window:
    """What a look at windows of so many steps each has found, by step and by window."""
    drifts = [
        replace(
            one,
            per_window=one.bytes_per_step,
            windows=one.steps,
            bytes_per_step=one.bytes_per_step / steps,
            steps=round(one.steps * steps),
            slope=None if one.slope is None else one.slope / steps,
        )
        for one in window.drifts
    ]
    return window._replace(drifts=drifts)


def united(
    all_series: Iterable[Series], spans: Iterable[Span]
) -> tuple[tuple[Drift, ...], tuple[Holder, ...]]:
    """What all looks found, each site and holder once: as the look saw it in which it grew most. What grows from step to step is
    told by the step, what does not by the largest window in which it is regular."""
    spans = list(spans)
    windows = [
        window._replace(drifts=[d for d in window.drifts if not _is_settled(d, window, spans)])
        for series in all_series
        for window in series.windows
    ]
    leaks = (d for w in windows for d in w.drifts if d.status == "leak" and d.kind != "eval")
    stepwise = {(d.site, d.place) for d in leaks if d.share >= EVERY_STEP}
    known = {(d.site, d.place) for w in windows for d in w.drifts if d.status in (*GROWING, "bounded")}
    growing: set[tuple[Site, Place]] = set()  # from window to window
    for span in sorted(spans, key=_rank_of):
        if span.window is not None:
            stretch = span.name.startswith(STRETCH)  # of which growth alone says something
            told = growing | (known if stretch else stepwise)
            drifts_of = [d for d in span.window.drifts if (d.site, d.place) not in told]
            drifts_of = [d for d in drifts_of if d.status in GROWING or not stretch]
            growing |= {(d.site, d.place) for d in drifts_of if d.status == "leak"}
            windows.append(span.window._replace(drifts=drifts_of))
    drifts: dict[Any, tuple[Drift, int]] = {}
    for number, window in enumerate(windows):
        for one in window.drifts:
            if (one.site, one.place) in growing and not (one.window and one.status == "leak"):
                continue
            place = (one.site, one.kind, one.place, one.released)
            if place not in drifts or _weight(one) > _weight(drifts[place][0]):
                drifts[place] = (one, number)
    chosen = {(one.site, one.place, number) for one, number in drifts.values()}
    leaking = {(one.site, one.place) for one, _ in drifts.values() if one.status == "leak"}
    holders = sorted(_holders(windows, chosen), key=lambda one: rank(one, leaking))
    return tuple(one for one, _ in drifts.values()), tuple(holders)


def rank(holder: Holder, leaking: Set[tuple[Site, Place]]) -> tuple[int, bool, int]:
    """What explains most of the growth comes first, and an optimizer's state last."""
    grown = sum(held.bytes for held in holder.births if (held.site, holder.place) in leaking)
    return -grown, holder.scope == "optimizer", -holder.nodes


def _rank_of(span: Span) -> float:
    """Of what comes equally often, give or take one, an evaluation says most, a loop's round least, and a stretch after all others."""
    if span.name.startswith(STRETCH):
        return math.inf
    return len(span.ends) - 1.5 * (span.name == EVALUATION) + span.name.startswith(ROUND)


def _is_settled(drift: Drift, window: Window, spans: Iterable[Span]) -> bool:
    """Whether what comes at intervals of steps is for larger windows to say, which were seen often enough meanwhile."""
    if drift.status not in ("leak", "occasional") or drift.outlived or drift.share >= EVERY_STEP:
        return False
    often = [one for one in spans if len(one.ends) >= FEWEST and one.ends[-FEWEST_WINDOWS] > window.judged[0]]
    # It comes in each of them.
    seen = (span for span in often if span.steps * max(1, drift.events) >= drift.steps)
    return any(not span.may_leak or span.window is not None for span in seen)


def _holders(windows: Sequence[Window], told: Set[tuple[Site, Place, int]]) -> tuple[Holder, ...]:
    """Who keeps what is told, as the look at those windows saw it from which it is told: no byte has two holders."""
    found: dict[Any, Holder] = {}
    for number, window in enumerate(windows):
        for held in window.holders:
            births = tuple(b for b in held.births if (b.site, held.place, number) in told)
            if not births and not held.nodes:
                continue
            own = replace(held, births=births, bytes=sum(birth.bytes for birth in births))
            name = (*NAMED(held), held.place, held.released)
            known = found.get(name)
            if known is None:
                found[name] = own
                continue
            larger, other = sorted((known, own), key=lambda one: (one.bytes, one.nodes), reverse=True)
            more = tuple(b for b in other.births if all(b.site != birth.site for birth in larger.births))
            size = larger.bytes + sum(b.bytes for b in more)
            found[name] = replace(larger, births=larger.births + more, bytes=size)
    return tuple(found.values())


def _weight(one: Drift) -> tuple[int, int]:
    return (one.status in GROWING) + (one.status == "leak"), one.total

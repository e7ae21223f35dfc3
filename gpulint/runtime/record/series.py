"""The steps of each kind as they are counted: boundaries, samples, and what looks at them have found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from gpulint.runtime.record.result import Drift, Holder, Sample, StepKind

LET_GO = 0.5  # of what leaked: where less is left, it was let go of


class Mark(NamedTuple):
    """One reading of everything."""

    seconds: float
    figures: Any  # probes.base.Figures
    rss: int | None
    heap: int | None
    sequence: int  # number of the next autograd node


class Window(NamedTuple):
    """What one look at one run of steps found."""

    drifts: list[Drift]
    holders: list[Holder]
    steps: int


class Series:
    """The steps of one kind so far: their boundaries as mark numbers, and how many of them are warm-up."""

    def __init__(self, kind: StepKind) -> None:
        self.kind: StepKind = kind
        self.count = 0
        self.warmup = 0
        self.warm = False
        self.boundaries: list[int] = []  # of the window: its start and every step's end
        self.samples: list[Sample] = []
        self.sampled = 0
        self.window: Window | None = None
        self.past: list[Window] = []  # of earlier loops
        self.begun = 0  # `count` when the present loop began
        self.state_sizes: list[int] = []  # of the optimizers, after each step of warm-up

    def archive(self) -> None:
        """The present loop is over: what was found in it stays, its steps are not joined with those to
        come."""
        if self.window is not None:
            self.past.append(self.window)
        self.window = None

    def begin_anew(self) -> None:
        """What comes is not measured against what was: it warms up again."""
        self.archive()
        self.boundaries, self.warm, self.begun = [], False, self.count
        self.state_sizes.clear()


def sample_of(marks: list[Mark], series: Series, previous: int, mark: int, sampled: bool) -> Sample:
    """The sample of the step between two marks (`previous` is -1 for the run's start)."""
    reading = marks[mark]
    begin = marks[previous].seconds if previous >= 0 else 0.0
    figures = reading.figures._asdict() if reading.figures is not None else {}
    peaks = [one.figures.peak for one in marks[previous + 1 : mark + 1] if one.figures is not None]
    if peaks and all(peak is not None for peak in peaks):
        figures["peak"] = max(peaks)
    return Sample(
        step=series.count,
        kind=series.kind,
        sampled=sampled,
        seconds=reading.seconds,
        duration=reading.seconds - begin,
        rss=reading.rss,
        heap=reading.heap,
        **figures,
    )


def released(before: Window, now: Window, steps: int) -> Window:
    """The window as it stands `steps` steps later: what leaked and was mostly let go of since is bounded."""
    left = {(d.site, d.place): d for d in now.drifts}
    drifts = []
    for one in before.drifts:
        later = left.get((one.site, one.place))
        if one.status == "leak" and (later.total if later is not None else 0) < LET_GO * one.total:
            reason = f"was let go of within {steps} more steps of the same loop"
            one = replace(one, status="bounded", reason=reason)
        drifts.append(one)
    kept = {(d.site, d.place) for d in drifts if d.status == "leak"}
    holders = [
        held
        for held in before.holders
        if any((birth.site, held.place) in kept for birth in held.births)
        or any(_same(held, later) and later.nodes >= LET_GO * held.nodes > 0 for later in now.holders)
        or (held.births and not held.nodes)
    ]
    return Window(drifts, holders, before.steps)


def _same(one: Holder, other: Holder) -> bool:
    return (one.variable, one.owner, one.file, one.line) == (
        other.variable,
        other.owner,
        other.file,
        other.line,
    )


def united(all_series: list[Series]) -> tuple[tuple[Drift, ...], tuple[Holder, ...]]:
    """What all windows found, each site and holder once: as the window saw it in which it grew most."""
    windows = [w for series in all_series for w in (*series.past, series.window) if w is not None]
    drifts: dict[Any, Drift] = {}
    holders: dict[Any, Holder] = {}
    for window in windows:
        for one in window.drifts:
            place = (one.site, one.kind, one.place)
            if place not in drifts or _weight(one) > _weight(drifts[place]):
                drifts[place] = one
        for held in window.holders:
            name = (held.file, held.line, held.variable, held.owner, held.place)
            if name not in holders or (held.bytes, held.nodes) > (holders[name].bytes, holders[name].nodes):
                holders[name] = held
    return tuple(drifts.values()), tuple(holders.values())


def _weight(one: Drift) -> tuple[bool, int]:
    return one.status == "leak", one.total

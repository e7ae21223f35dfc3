"""Everything measured in a session, as the one record that leaves the process."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import sys
from collections.abc import Iterable
from typing import Any

from gpulint.runtime.child.session import Session
from gpulint.runtime.record import drift
from gpulint.runtime.record.besides import Besides, Cycle
from gpulint.runtime.record.peaks import CardUse, StretchPeak
from gpulint.runtime.record.recording import Recording
from gpulint.runtime.record.result import ENDED_WELL, End, Environment, RankResult, Site, Trend, WindowFigures
from gpulint.runtime.record.series import united


def assemble(session: Session, end: End, notes: Iterable[str]) -> RankResult:
    """The result as it stands. `notes` are said besides those of the session and of its probe."""
    every = list(session.series.values())
    drifts, holders = united(every, session.spans.values())
    said = [*session.notes, *notes, *(session.probe.notes() if session.probe is not None else [])]
    return RankResult(
        rank=session.rank,
        world_size=session.world_size,
        environment=_environment(session),
        end=end,
        boundary=session.stepper.boundary,
        warmup=max(series.warmup for series in every),
        samples=tuple(sorted((s for series in every for s in series.samples), key=lambda s: s.seconds)),
        drifts=drifts,
        holders=holders,
        trends=tuple(_trends(session)),
        lines=tuple(session.lines.figures()),
        calls=tuple(session.calls.figures()),
        forwards=tuple(session.forwards.figures() if session.forwards is not None else ()),
        notes=tuple(said),
        recording=_recording(session, end),
        process=session.process,
        peaks=_peaks(session, end),
        cards=_cards(session),
        first_use=_first_use(session),
        pid=os.getpid(),
        besides=_besides(session),
        windows=_windows(session),
        unjudged=tuple(session.unjudged),
    )


def _largest(cycles: list[Cycle]) -> tuple[Cycle, ...]:
    """Each kind of cycle once, as the look saw it that found most."""
    found: dict[tuple[str, ...], Cycle] = {}
    for one in sorted(cycles, key=lambda cycle: cycle.bytes):
        found[(*one.chain, one.cut)] = one
    return tuple(sorted(found.values(), key=lambda cycle: -cycle.bytes))


def _besides(session: Session) -> Besides:
    touching = session.touching
    return Besides(
        watched=dict(touching.watched),
        doubt=touching.doubt,
        untouched=touching.untouched,
        cycles=_largest(session.cycles),
        collections=session.collector.figures(),
        processes=session.relatives.figures(),
    )


def _windows(session: Session) -> tuple[WindowFigures, ...]:
    return tuple(
        WindowFigures(
            span.name,
            span.site,
            len(span.ends),
            tuple(span.levels),
            tuple(span.seconds),
            span.window is not None,
            span.kept,
            span.is_open,
        )
        for span in session.spans.values()
        if span.ends or span.is_open
    )


def _peaks(session: Session, end: End) -> tuple[StretchPeak, ...]:
    if session.peaking is None:
        return ()
    found: tuple[StretchPeak, ...] = session.peaking.result(end.reason in ENDED_WELL)
    return found


def _cards(session: Session) -> tuple[CardUse, ...]:
    if session.probe is None or session.probe.name != "cuda-allocator":
        return ()
    from gpulint.runtime.child.peaking import cards_of

    with contextlib.suppress(Exception):
        return cards_of(session.torch)
    return ()


def _first_use(session: Session) -> Site | None:
    number = getattr(session.probe, "first_use", 0)
    return session.frames.sites[number] if number else None


def _recording(session: Session, end: End) -> Recording | None:
    """What a trial compares. Nothing where the main thread may be at it still."""
    if session.recorder is None or end.reason in ("timeout", "interrupted"):
        return None
    with session.aside():
        recording: Recording = session.recorder.recording()
        return recording


def _trends(session: Session) -> list[Trend]:
    found: list[Trend] = []
    for series in session.series.values():
        found.extend(drift.trends(series.kind, [s for s in series.samples if s.sampled]))
    return found


def _environment(session: Session) -> Environment:
    base: dict[str, Any] = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
    if session.torch is None or session.probe is None:
        return Environment(**base)
    from gpulint.runtime.observing import machine

    return Environment(**base, **machine.environment(session.probe.name))

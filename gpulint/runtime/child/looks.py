"""When steps are judged: on the way, where the script may end by itself, and at the end."""

from __future__ import annotations

import bisect
import contextlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from gpulint.runtime.child.session import Session
from gpulint.runtime.observing.calls import collect
from gpulint.runtime.probes.base import Block
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record import drift
from gpulint.runtime.record.besides import FEWEST_STOPPED, Later
from gpulint.runtime.record.drift import FEWEST
from gpulint.runtime.record.result import Drift, Holder, Place, Site, Status
from gpulint.runtime.record.series import (
    EVALUATION,
    GONE,
    GROWING,
    NAMED,
    NO_FURTHER,
    STRETCH,
    Series,
    Span,
    View,
    Window,
    rank,
    released,
    spread,
)

LOOKS = (5, 10)  # sampled steps after which the window is judged already, in case the script ends by itself
MOST_EVALUATIONS = 12  # looks into evaluation loops that include a search for holders


class Looks:
    """The looks into the windows of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._evaluations = 0
        self._judged: dict[Any, int] = {}  # evaluation loop -> steps it was judged by
        # Of holders, by name, when they were first found; None where it has changed
        self._lengths: dict[Any, int | None] = {}
        # Why growth has ended, and in how many steps that was first seen
        self._ended: dict[tuple[Site, Place], tuple[str, int]] = {}

    def prepare(self) -> None:
        """Import what a look needs: in the middle of a step that would take the step's time."""
        from gpulint.runtime.holding import cycles, holders  # noqa: F401

    def look_if_due(self, series: Series) -> None:
        """After a step."""
        session = self._session
        steps, wanted = len(series.boundaries) - 1, session.options.steps
        if series.kind == "eval":
            phase = session.stepper.phase
            if steps in (4, *LOOKS, wanted) and self.is_to_be_judged(phase, steps):
                self._judged[phase] = steps
                self._evaluations += 1
                self.look(series, 1 if steps < 6 else 2, passing=steps < LOOKS[-1], last=steps >= wanted)
        elif series.warm and (steps in LOOKS if steps < wanted else session.endless and steps == wanted):
            self.look(series, 2, passing=steps < LOOKS[-1], last=steps >= wanted)

    def is_to_be_judged(self, phase: Any, steps: int = LOOKS[-1]) -> bool:
        """Whether a look at so many steps of an evaluation loop is due: one that has run before as long is not judged
        again."""
        return self._evaluations < MOST_EVALUATIONS and self._judged.get(phase, 0) < steps

    def look(
        self,
        series: Series,
        age: int,
        extra_frames: tuple[FrameType, ...] = (),
        passing: bool = False,
        last: bool = True,
    ) -> None:
        """Judge the steps so far. Keeps what earlier looks found if this one cannot say anything."""
        view = View(series.kind, tuple(series.boundaries), age, extra_frames, passing, last)
        found = self._see(view)
        if found is not None:
            series.window = found
            self._session.lines.judge(series.boundaries, view.judged_until)

    def look_at(self, span: Span) -> None:
        """Judge the windows of one kind so far: what is older than the last of them has outlived one."""
        counts = self._session.counts
        kind = "eval" if span.name == EVALUATION else max(counts, key=lambda kind: counts[kind])
        view = View(kind, (span.begun, *span.ends), 1, window=span.name)
        found = self._see(view)
        if found is not None:
            steps = self._session.ended[span.first :]
            span.window = spread(found, max(1.0, span.steps))
            self._session.lines.judge((span.begun, *steps), view.judged_until)

    def _see(self, view: View) -> Window | None:
        session = self._session
        if not session.measures or len(view.boundaries) < 2:
            return None
        try:
            with session.aside():
                drifts, holders = self._judge(view)
                judged = view.boundaries[0], view.judged_until
                return Window(drifts, holders, len(view.boundaries) - 1, judged)
        except Exception as error:
            session.unjudged.append(f"steps could not be judged: {type(error).__name__}: {error}")
            return None

    def _judge(self, view: View) -> tuple[list[Drift], list[Holder]]:
        """Judge what `view` is at: what it grew by, and who holds that."""
        from gpulint.runtime.holding import cycles, holders

        session, probe, frames = self._session, self._session.probe, self._session.frames
        boundaries, passing = list(view.boundaries), view.passing
        start, judged_until = boundaries[0], view.judged_until
        probe.settle()
        before = alive = probe.born(start)
        marks = probe.resolution(boundaries)
        if len(marks) < 2:
            return [], []
        if marks[-1] != boundaries[-1]:
            marks.append(boundaries[-1])
        edges = [boundaries.index(mark) for mark in marks]

        nodes = range(session.marks[start].sequence, session.marks[judged_until].sequence)
        times, sizes = session.forwards.growing_inputs() if session.forwards is not None else (1.0, set())
        stretched = view.window.startswith(STRETCH)
        levels: dict[tuple[Site, Place], Sequence[tuple[int, int]]] = {}

        def judged(after: _Blocks) -> list[Drift]:
            had = [*before.values(), *(one for one in session.freed if one.epoch >= start)]
            births = _births(probe, frames, had, after, marks, boundaries)
            levels.update({(one.site, one.place): one.levels or [] for one in births})
            found = [(one, drift.judge(one, edges, view.kind, view.age, view.window)) for one in births]
            return [drift.going_on(d, one.levels or [] if stretched else []) for one, d in found if d]

        drifts = judged(before.values())
        # A full collection takes as long as many a step, and the walk to the holders as long as some.
        may_leak = any(d.status in ("leak", "unsettled") for d in drifts)
        if may_leak or (not passing and _lasting(probe, before.values(), judged_until, marks)):
            session.cycles += cycles.collected(before, probe.key, frames, collect)
            probe.settle()
            alive = probe.born(start)
            drifts = judged(alive.values())
            session.freed += (one for key, one in before.items() if alive.get(key) != one)
        leaks = {(d.site, d.place) for d in drifts if d.status == "leak"}
        if passing and not leaks:
            return drifts, []
        kept = ("leak", "unsettled", "occasional", "bounded") if view.last else ("leak",)
        suspects = {(d.site, d.place) for d in drifts if d.status in kept}
        enlarged = {(d.site, d.place) for d in drifts if d.enlarged}
        targets = {}
        for key, block in alive.items():
            cell = (frames.sites[block.site], block.place)
            if cell in enlarged or (cell in suspects and block.epoch < judged_until):
                # What one of the windows has made is gathered by what holds several of them.
                epoch = bisect.bisect_right(boundaries, block.epoch) if view.window else block.epoch
                targets[key] = block._replace(epoch=epoch)
        if not targets and not nodes:
            return drifts, []
        urgent = {key for key, block in targets.items() if (frames.sites[block.site], block.place) in leaks}
        several = 2 if view.window else 3
        found = holders.find(targets, probe.key, nodes, frames, view.frames, urgent, False, sizes, several)
        drifts, found = drift.less_set_up(drifts, found)
        found = [self._slotted(holder) for holder in found]
        drifts = drift.settle(drifts, found, probe.capacity(), times)
        if stretched:
            drifts = [drift.refilled(one, found, levels[one.site, one.place]) for one in drifts]
        leaking = {(d.site, d.place) for d in drifts if d.status == "leak"}
        found.sort(key=lambda holder: rank(holder, leaking))
        return sorted(drifts, key=lambda d: (d.status != "leak", -d.bytes_per_step)), found

    def _slotted(self, holder: Holder) -> Holder:
        """With a limit where it has as many entries as when it was first found, and each has room for one."""
        name, length = (*NAMED(holder), holder.place), holder.length
        is_new = name not in self._lengths
        if is_new or self._lengths[name] != length:
            self._lengths[name] = length if is_new else None
        elif holder.slots and length is not None and not holder.limit and holder.bound is None:
            limit = f"has {length} entries, no more than at first, and each keeps one"
            return replace(holder, bound=length, limit=limit)
        return holder

    @property
    def suspects(self) -> bool:
        """Whether something leaks from step to step, as far as it is known."""
        return bool(self._leaks())

    @property
    def piles(self) -> bool:
        """Whether something of that is kept, and not just replaced by something larger each time, as long as what came since does not show
        that it has stopped."""
        lingering = self._session.lingering
        since = lingering.later(same=True) if lingering is not None else Later()
        return not all(drift.enlarged or since.stopped(drift.bytes_per_step) for drift in self._leaks())

    def _leaks(self) -> list[Drift]:
        windows = (window for series in self._session.series.values() for window in series.windows)
        return [drift for window in windows for drift in window.drifts if drift.status == "leak"]

    def recheck(self, span: Span, again: bool, last: bool = False) -> bool:
        """A window has ended: what leaked from step to step, and was let go of by now, was kept as long as the window lasted.
        That tells nothing where the window is all of the training: it has ended before, or begins `again`. Returns whether what is
        replaced by something larger each time is there still: it may be as large in the next window, and no larger. The `last` end is also
        that of the loop or the script, which lets go of all."""
        session = self._session
        if len(span.ends) < 2 and span.name != EVALUATION and not again:
            return False
        for series in session.series.values():
            series.revise(lambda window: self._left(window, span, last))
        for other in session.spans.values():
            if other is not span and other.window is not None:
                other.window = self._left(other.window, span, last)
        windows = [series.window for series in session.series.values() if series.window is not None]
        return any(d.enlarged and d.status == "leak" for window in windows for d in window.drifts)

    def _left(self, window: Window, span: Span, last: bool) -> Window:
        """What is left of what leaked in a window, now that another one has ended. What has outlived an earlier end of that is let go of
        for some other reason: that the script ends, say."""
        probe, sites = self._session.probe, self._session.frames.sites
        begin, end = window.judged
        # A graph that is kept for no backward is a mistake, however soon it goes.
        graphs: Counter[Site] = Counter()
        for holder in window.holders:
            graphs.update({birth.site: birth.bytes for birth in holder.births if holder.through_graph})
        growing = [d for d in window.drifts if d.status == "leak" or d.outlived]
        leaking = [d for d in growing if graphs[d.site] < GONE * d.total]
        outlived = any(begin < earlier and (last or earlier < end) for earlier in span.ends[:-1])
        if not leaking or outlived or begin < span.begun or span.ends[-1] <= end:
            return window
        probe.settle()
        alive: Counter[tuple[Site, str]] = Counter()
        enlarged = {(d.site, d.place) for d in leaking if d.enlarged}
        for block in probe.born(begin).values():
            cell = (sites[block.site], block.place)
            if block.epoch < end or cell in enlarged:
                alive[cell] += block.size
        judged = {}
        for one in leaking:
            if alive[one.site, one.place] < GONE * one.total:
                if one.outlived and last:
                    if one.outlived < FEWEST:
                        reason = f"outlived {one.outlived} of them before the script ended, which is too few to tell"
                        judged[one] = replace(one, status="occasional", reason=reason)
                    continue
                reason = f"was let go of at the end of each {span.name}"
                if one.outlived:
                    reason = f"was let go of when {one.outlived + 1} {span.name}s had ended"
                judged[one] = replace(one, status="bounded", reason=reason, released=span.name, outlived=0)
            elif one.kind == "eval" and span.name == EVALUATION and not one.window:
                number = len(span.ends)
                reason = "outlived the one evaluation that was seen, which is too few to tell"
                if number > 1:
                    reason = f"outlived {number} evaluations"
                status: Status = "leak" if number > 1 else "occasional"
                judged[one] = replace(one, status=status, reason=reason, outlived=number)
        drifts = [judged.get(one, one) for one in window.drifts]
        gone = {(d.site, d.place) for d in drifts if d.released}
        holders = [
            replace(h, released=span.name) if gone.issuperset((b.site, h.place) for b in h.births) else h
            for h in window.holders
        ]
        return window._replace(drifts=drifts, holders=holders if gone else window.holders)

    def take_back(self) -> None:
        """Leaks of the sampled steps that the same loop has let go of since, or that have stopped growing, are none; nor are they of
        evaluations and other windows, which have made the same. A window that is longer than the steps in which nothing grew has seen
        more than these."""
        session, lingering = self._session, self._session.lingering
        if lingering is None:
            return
        last = lingering.later(same=True)
        for series in (session.series[kind] for kind in session.main_kinds):
            before = now = series.window
            if before is None or now is None:
                continue
            grows = any(d.status in GROWING for d in before.drifts) or self.suspects
            if grows or any(holder.nodes for holder in before.holders):
                if lingering.held:
                    self.look(series, 2)
                held = lingering.held
                fell = lingering.fell if held else 0
                now = series.window = released(before, series.window or before, held, fell, last)
            # What a limit explains is asked of each by itself: something else may keep of the same.
            for d in now.drifts:
                if d.status == "bounded" and not d.limited:
                    self._ended.setdefault((d.site, d.place), (d.reason, last.steps))
        for each in session.series.values() if not session.stepper.has_optimizer else ():
            each.revise(self._since)
        others: list[Series | Span] = [session.series["eval"], *session.spans.values()]
        for other in others:
            if other.window is not None and self._ended:
                long = other.steps if isinstance(other, Span) else 0.0
                drifts = []
                for d in other.window.drifts:
                    reason, steps = self._ended.get((d.site, d.place), ("", 0))
                    told = d.status == "leak" and not (reason.startswith(NO_FURTHER) and long > steps)
                    drifts.append(replace(d, status="bounded", reason=reason) if told and reason else d)
                other.window = other.window._replace(drifts=drifts)

    def _since(self, window: Window) -> Window:
        """The window as it stands where all steps are of one kind: what was replaced by something larger in each, and goes on to be replaced
        without getting larger, has its size by now: what belongs to objects that come and go."""
        session, (begin, end) = self._session, window.judged
        after = [mark for mark in session.ended if mark > end]
        grown = [d for d in window.drifts if d.status == "leak" and d.enlarged and d.times > 1]
        if not grown or len(after) < FEWEST_STOPPED:
            return window
        session.probe.settle()
        sizes, fresh = Counter[tuple[Site, Place]](), Counter[tuple[Site, Place]]()
        for block in session.probe.born(begin).values():
            cell = session.frames.sites[block.site], block.place
            sizes[cell] += block.size
            fresh[cell] += block.size if block.epoch >= after[len(after) // 2] else 0
        reason = f"was replaced in {len(after)} more steps, and grew no further"
        drifts = list(window.drifts)
        for one in grown:
            cell = one.site, one.place
            later = Later(len(after), round(sizes[cell] - one.total * one.times / (one.times - 1)))
            if later.stopped(one.bytes_per_step) and fresh[cell] >= GONE * sizes[cell] > 0:
                drifts[drifts.index(one)] = replace(one, status="bounded", reason=reason)
        return window._replace(drifts=drifts)

    def look_at_end(self, frames: tuple[FrameType, ...], anew: bool = True) -> None:
        """A last look while a traceback, or a main thread that hangs, still holds the script's frames. Not
        `anew`: only where nothing was judged yet."""
        session = self._session
        for series in session.series.values():
            established = series.kind != "eval" and session.lingering is not None
            if established or (series.window is not None and not anew):
                continue
            going_on = series.kind != "eval" or session.stepper.in_phase
            if series.warm and len(series.boundaries) > 3 and going_on:
                with contextlib.suppress(Exception):
                    self.look(series, 2, frames)


# -- one look ------------------------------------------------------------------------------------------------

_Cell = tuple[int, Place]  # site, place
_Blocks = Collection[Block]


def _lasting(probe: Any, blocks: _Blocks, judged_until: int, marks: list[int]) -> bool:
    """Whether memory of several steps has survived at one site, be it kept or garbage. Where a site has held the same
    bytes all along, only addresses were exchanged: gradients that each step makes anew, say."""
    epochs: dict[_Cell, set[int]] = {}
    for block in blocks:
        if block.epoch < judged_until:
            epochs.setdefault((block.site, block.place), set()).add(block.epoch)
    recorded = probe.resolution(marks)[1:]
    several = (cell for cell, found in epochs.items() if len(found) >= drift.FEWEST)
    return any(len(set(probe.series(*cell, recorded) or (0, 1))) > 1 for cell in several)


def _births(
    probe: Any, frames: Frames, before: _Blocks, after: _Blocks, marks: list[int], boundaries: list[int]
) -> list[drift.Births]:
    had, alive, counts = (defaultdict[_Cell, Counter[int]](Counter) for _ in range(3))
    now: Counter[_Cell] = Counter()
    for block, interval in _with_intervals(before, marks):
        had[block.site, block.place][interval] += block.size
    for block, interval in _with_intervals(after, marks):
        alive[block.site, block.place][interval] += block.size
        counts[block.site, block.place][interval] += 1
    for block in after:  # those between or after all intervals too
        now[block.site, block.place] += block.size
    found = []
    for cell in dict.fromkeys([*had, *alive, *now]):
        site, place = cell
        born = alive[cell], counts[cell], had[cell] - alive[cell]
        levels = _levels(probe, site, place, boundaries)
        found.append(drift.Births(frames.sites[site], place, *born, levels, now[cell]))
    return found


def _with_intervals(blocks: _Blocks, marks: list[int]) -> Iterator[tuple[Block, int]]:
    """The blocks, each with the number of the interval in which its epoch lies."""
    for block in blocks:
        if marks[0] <= block.epoch < marks[-1]:
            yield block, bisect.bisect_right(marks, block.epoch) - 1


def _levels(probe: Any, site: int, place: Place, boundaries: list[int]) -> list[tuple[int, int]] | None:
    """The site's live bytes after those steps of the window at which they were recorded."""
    marks = probe.resolution(boundaries)
    live = probe.series(site, place, marks)
    return None if live is None else [(boundaries.index(m), b) for m, b in zip(marks, live, strict=True)]

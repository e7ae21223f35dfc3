"""The stretches that a script goes through again and again: rounds of its loops, calls of its functions, runs of its files,
evaluations, passes over a DataLoader, and what the user has named.

Each end of one is a mark. What was born in one and outlives those that follow is growth of that window, however few steps it
has: looks at windows judge from end to end what looks at steps judge from step to step. Which calls are under way, and where in
them, an event's stack says: what is no longer on it has ended, and a loop has come round where an event comes from a place of it
that was passed before, or whose head has run again meanwhile.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import NamedTuple

from gpulint.runtime.child.looks import Looks
from gpulint.runtime.child.session import Session
from gpulint.runtime.holding.naming import heads, loops_around
from gpulint.runtime.probes.frames import Activation, activation, site_in
from gpulint.runtime.record.drift import FEWEST, NOTED, NOTED_SHARE
from gpulint.runtime.record.result import Site
from gpulint.runtime.record.series import EVALUATION, ROUND, STRETCH, Span

WANTED = 8  # ends of a window that may leak after which it is no longer waited for
MOST_ENDS = 100  # of a window, after which it is left alone
LOOKED_AT = 0.5  # of its ends, which come between two looks at a window at least
WAITED_FOR = 0.25  # of what is told: what several windows have left is told where one of them leaves less
STEPWISE = 6  # ends after which it is known whether a window is just a step
AGAIN = 1.1  # times the ends that were looked at last, at which it is looked at again before the run ends
IN_STRETCH = 16  # steps
CALLS = 4  # calls of one function after which, where nothing else is a step, they are steps


class _Kind(NamedTuple):
    """What tells the rounds of one loop, or the calls of one function, from others: a file that is run again has the same."""

    name: str
    site: Site
    is_call: bool = False


class _Place(NamedTuple):
    """An instruction of the script's, with the function that it is in and the loops around it, the outermost first."""

    function: _Kind
    instruction: int
    line: int
    loops: tuple[_Kind, ...]


@dataclass(slots=True)
class _Call:
    """A call under way: where in it the last event came from, and by which call that it made there. `passed` are the instructions
    that the present round of each loop around it has come by."""

    call: weakref.ref[Activation]
    below: weakref.ref[Activation] | None
    place: _Place
    passed: list[set[int]] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)  # how often the heads of the loops around it had run

    @property
    def kinds(self) -> tuple[_Kind, ...]:
        return (self.place.function, *self.place.loops)

    def move(self, to: _Call) -> tuple[list[_Kind], list[_Kind]]:
        """An event comes from another place of the same call, or from the same place once more. Returns what has ended thereby, the
        outermost first, and what has begun."""
        old, new = self.place, to.place
        common = 0
        for one, other in zip(old.loops, new.loops, strict=False):
            common += one == other
        again = common - 1
        ticked = [i for i in range(common) if self.ticks[i] != to.ticks[i]]
        # A call over several lines goes back in lines, an exception's handler in instructions.
        back = new.instruction <= old.instruction and new.line <= old.line
        if ticked:
            again = ticked[0]
        elif common and not back and new.instruction not in self.passed[again]:
            again = common
        ended, begun = list(old.loops[max(0, again) :]), list(new.loops[max(0, again) :])
        self.place, self.below, self.ticks = new, to.below, to.ticks
        self.passed[max(0, again) :] = [set() for _ in begun]
        self.note()
        return ended, begun

    def note(self) -> None:
        """The place is passed."""
        self.passed += [set() for _ in self.place.loops[len(self.passed) :]]
        for one in self.passed:
            one.add(self.place.instruction)


class Windows:
    """Follows the windows of a session. `mark` takes a reading, whatever is being watched; `promote` is told that calls of a
    function, which it names, are steps from now on."""

    def __init__(
        self, session: Session, looks: Looks, mark: Callable[[], int], promote: Callable[[str], None]
    ) -> None:
        self.are_named = bool(session.options.named)  # by the user, who overrules what is found
        self._session = session
        self._looks = looks
        self._mark = mark
        self._promote = promote
        self._calls: list[_Call] = []  # under way, the outermost first
        self._places: dict[tuple[int, int], _Place] = {}
        self._codes: list[CodeType] = []  # keeps the ids in `_places` from being reused
        self._phase: Hashable | None = None  # the evaluation under way
        self._promoted: Hashable | None = None
        self._stepwise: set[Hashable] = set()  # windows that are steps under another name

    # -- events ----------------------------------------------------------------------------------------------

    def arrive(self, frame: FrameType) -> bool:
        """An event comes from this frame: what was under way and is no longer has ended. Returns whether that ends a step."""
        if self.are_named:
            return False
        stack = list(self._stack(frame))[::-1]
        ended: list[_Kind] = []
        begun: list[_Kind] = []
        common = 0
        for old, new in zip(self._calls, stack, strict=False):
            if old.call() is not new.call():
                break
            common += 1
            if old.place.instruction != new.place.instruction or _other(old.below, new.below):
                ended, begun = old.move(new)
                break
        ended += [kind for one in self._calls[common:] for kind in one.kinds]
        begun += [kind for one in stack[common:] for kind in one.kinds]
        for one in stack[common:]:
            one.note()
        self._calls[common:] = stack[common:]
        stepped = False
        # Of what ends at once the outermost call is judged, and a loop only where that is all.
        for kind in sorted(ended, key=lambda kind: kind.name.startswith(ROUND)):
            self.end(kind, again=kind in begun)
            stepped = stepped or kind == self._promoted
        for kind in begun:
            self.begin(kind, kind.name, kind.site)
        return stepped

    def change_thread(self) -> None:
        """Another thread is followed: the calls under way go on, unseen."""
        self._calls.clear()

    def _stack(self, frame: FrameType | None) -> Iterator[_Call]:
        """The calls of the script's that are under way, the innermost first."""
        frames = self._session.frames
        below: FrameType | None = None
        while frame is not None:
            call = activation(frame) if frames.is_user(frame.f_code.co_filename) else None
            if call is not None:
                inner = activation(below) if below is not None else None
                place = self._place(frame)
                ticks = self._session.ticks.of(frame.f_code, (loop.site.line for loop in place.loops))
                below_it = weakref.ref(inner) if inner else None
                yield _Call(weakref.ref(call), below_it, place, ticks=ticks)
            below, frame = frame, frame.f_back

    def _place(self, frame: FrameType) -> _Place:
        code, instruction = frame.f_code, frame.f_lasti
        place = self._places.get((id(code), instruction))
        if place is None:
            start, line = site_in(code), frame.f_lineno or 0
            is_call = start.function != "<module>"
            said = f"call of `{start.function}()`" if is_call else f"run of `{os.path.basename(start.file)}`"
            parted = not self._session.peaking.lines
            around = loops_around(start.file, start.line, line) if parted else ()
            loops = tuple(_Kind(f"{ROUND} `{head}`", replace(start, line=first)) for first, head in around)
            function = _Kind(said, start, is_call)
            place = self._places[id(code), instruction] = _Place(function, instruction, line, loops)
            self._codes.append(code)
            if parted:
                self._session.ticks.follow(code, heads(start.file))
        return place

    def follow(self, frame: FrameType) -> None:
        """After an event: where it belongs to no evaluation, or to another one, that under way has ended."""
        stepper = self._session.stepper
        phase = stepper.phase if stepper.boundary != "explicit" else None
        if phase == self._phase:
            return
        if self._phase is not None:
            self.end(self._phase)
        if phase is not None:
            name = EVALUATION if stepper.has_optimizer else "loop"
            self.begin(phase, name, self._session.frames.sites[self._session.frames.index(frame)])
        self._phase = phase

    def begin(self, key: Hashable, name: str, site: Site) -> None:
        """A window begins; `key` tells its kind from others."""
        if key not in self._session.spans and key not in self._stepwise and self._session.measures:
            self._session.spans[key] = Span(name, site, self._mark(), len(self._session.ended))

    def begin_named(self, name: str, site: Site) -> None:
        """A window that the user has named begins."""
        if not self.are_named:
            self.are_named = True
            known = self._session.spans.items()
            self._session.spans = {key: span for key, span in known if span.name == EVALUATION}
        self.begin(name, name, site)

    def end(self, key: Hashable, again: bool = False, last: bool = False) -> None:
        """A window has ended, and the next of its kind has begun where it does so `again`; the `last` one ends with the script."""
        span = self._session.spans.get(key)
        if span is None:
            return
        span.seconds.append(self._session.marks[-1].seconds)
        span.steps = (len(self._session.ended) - span.first) / len(span.seconds)
        if len(span.seconds) >= STEPWISE and self._is_stepwise(span):
            del self._session.spans[key]
            self._stepwise.add(key)
            return
        if len(span.ends) >= MOST_ENDS and not self._looks.suspects:
            return
        span.ends.append(self._mark())
        self._decide(key, span, last)
        # What a loop has left may have gone with its call once it is over.
        over = last or (not again and span.name.startswith(ROUND))
        span.may_leak |= self._looks.recheck(span, again, over)
        due = len(span.ends) >= span.due and self._session.sees_births and not (over and span.window)
        if due and (span.may_leak or span.window is not None) and not self._is_stepwise(span):
            span.due, span.settled = len(span.ends) + 1 + int(LOOKED_AT * len(span.ends)), span.kept
            others = (one for one in self._session.spans.values() if one is not span)
            twins = (one for one in others if one.window is not None)
            # What is the same under another name was judged already
            if span.name == EVALUATION or all(one.ends != span.ends for one in twins):
                self._looks.look_at(span)

    @property
    def around(self) -> list[weakref.ref[Activation]]:
        """The calls under way, down to that with the innermost loop: those that it makes end with each round."""
        looped = [number for number, one in enumerate(self._calls) if one.place.loops]
        return [one.call for one in self._calls[: looped[-1] + 1 if looped else None]]

    def stepped(self) -> None:
        """A step has passed unwatched: what comes in few of them shows in stretches of several."""
        span = self._session.spans.get(STRETCH)
        if span is None:
            self.begin(STRETCH, f"{STRETCH} {IN_STRETCH} steps", self._session.frames.here())
        elif len(self._session.ended) - span.first >= IN_STRETCH * (len(span.seconds) + 1):
            self.end(STRETCH, again=True)

    def look_again(self) -> None:
        """What grows in windows that have ended since they were looked at: it may have its size by now."""
        for span in self._session.spans.values():
            before = span.window
            if before is None or len(span.ends) < AGAIN * before.steps:
                continue
            known = {(d.site, d.place): d for d in before.drifts if d.status not in ("leak", "unsettled")}
            if len(known) < len(before.drifts):
                self._looks.look_at(span)
                drifts = [known.get((d.site, d.place), d) for d in span.window.drifts] if span.window else []
                span.window = (span.window or before)._replace(drifts=drifts)

    def close(self) -> None:
        """The script has ended by itself: so have the calls and the evaluation under way."""
        for one in reversed(self._calls):
            for kind in reversed(one.kinds) if one.call() is None else ():
                self.end(kind, last=True)
        self._calls.clear()
        for span in self._session.spans.values():
            span.is_open = False
        if self._phase is not None:
            self.end(self._phase, last=True)
            self._phase = None

    # -- what becomes of them --------------------------------------------------------------------------------

    def _decide(self, key: Hashable, span: Span, last: bool) -> None:
        """Whether calls are steps where nothing else is, and whether something may leak in the window."""
        number = len(span.ends)
        is_call = isinstance(key, _Kind) and key.is_call
        if len(self._session.ended) == span.first and number >= CALLS and is_call and self._promoted is None:
            if not self._session.ended and self._session.stepper.is_idle:
                self._promoted = key
                self._promote(span.site.function)
        if not last:  # the script has let go of all
            span.levels.append(self._session.marks[span.ends[-1]].figures.allocated or 0)
        span.kept = self._kept(span)
        left = span.levels[-1] - span.levels[-2] if len(span.levels) > 1 else span.kept
        span.may_leak = max(left, span.kept - span.settled) >= self._noted
        if number < FEWEST:
            span.settled = span.kept

    def _is_stepwise(self, span: Span) -> bool:
        """Whether the window is no more than a step, as far as is known."""
        number, steps = len(span.seconds), len(self._session.ended) - span.first
        within = 3 * steps < 2 * number  # of a step there are several
        return 2 * steps < 3 * number + 2 and not (within and self._session.stepper.is_idle)

    def _kept(self, span: Span) -> int:
        """Bytes from before the last window; where there is no other from that one, what its last step has in use left out."""
        probe, session = self._session.probe, self._session
        probe.settle()
        since, until = span.begun, span.ends[max(0, len(span.ends) - 2)]
        if len(span.ends) == 1:
            warm = (series.boundaries[0] for series in session.series.values() if series.boundaries)
            since = max(since, min(warm, default=0))
            until = next((mark for mark in reversed(session.ended) if since < mark < until), until)
        return sum(b.size for b in probe.born(since).values() if b.epoch < until and b.place == "device")

    @property
    def _noted(self) -> int:
        """Bytes that are worth waiting for."""
        peak = max((mark.figures.peak or 0 for mark in self._session.marks), default=0)
        return int(WAITED_FOR * min(NOTED, NOTED_SHARE * peak))

    @property
    def missing(self) -> bool:
        """Whether a window that may leak has ended too seldom yet."""
        return any(one.may_leak and len(one.ends) < WANTED for one in self._session.spans.values())

    def mark_open(self) -> bool:
        """Find out which windows with several steps will come round as it seems, and have done so too seldom to say anything of them:
        loops that are under way, and what the user has named. Returns whether there are any."""
        loops = {kind for one in self._calls for kind in one.place.loops}
        for key, span in self._session.spans.items():
            comes = key in loops or (self.are_named and span.name != EVALUATION)
            span.is_open = comes and len(span.ends) < FEWEST and not self._is_stepwise(span)
        return any(span.is_open for span in self._session.spans.values())


def _other(one: weakref.ref[Activation] | None, another: weakref.ref[Activation] | None) -> bool:
    """Whether these are not the same call."""
    return one is None or another is None or one() is not another()

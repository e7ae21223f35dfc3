"""The stretches that a script goes through again and again: evaluations, passes over a DataLoader, calls of its functions, and
what the user has named.

Each end of one is a mark. What was born in one and outlives those that follow is growth of that window, however few steps it
has: looks at windows judge from end to end what looks at steps judge from step to step.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Hashable
from types import CodeType, FrameType

from gpulint.runtime.child.looks import Looks
from gpulint.runtime.child.session import Session
from gpulint.runtime.probes.frames import Activation, activation, function_name
from gpulint.runtime.record.drift import NOTED, NOTED_SHARE
from gpulint.runtime.record.result import Site
from gpulint.runtime.record.series import EVALUATION, Span

WANTED = 4  # ends of a window that may leak after which it is left alone
LOOKED_AT = (3, 4, 6, 10)  # ends at which a window is judged
STEPWISE = 6  # ends after which it is known whether a window is just a step
CALLS = 4  # calls of one function after which, where nothing else is a step, they are steps


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
        self._calls: list[tuple[weakref.ref[Activation], CodeType]] = []  # under way, the outermost first
        self._phase: Hashable | None = None  # the evaluation under way
        self._promoted: Hashable | None = None
        self._stepwise: set[Hashable] = set()  # windows that are steps under another name

    # -- events ----------------------------------------------------------------------------------------------

    def arrive(self, frame: FrameType) -> bool:
        """An event comes from this frame: the calls that it is in no longer have ended. Returns whether that ends a step."""
        if self.are_named:
            return False
        stack = self._stack(frame)
        common = 0
        for (reference, _), (call, _) in zip(self._calls, stack, strict=False):
            if reference() is not call:
                break
            common += 1
        gone, self._calls[common:] = (
            self._calls[common:],
            [(weakref.ref(c), code) for c, code in stack[common:]],
        )
        stepped = False
        anew = {code for _, code in stack[common:]}
        for _, code in reversed(gone):
            self.end(code, again=code in anew)
            stepped = stepped or code is self._promoted
        for _, code in stack[common:]:
            site = Site(os.path.abspath(code.co_filename), code.co_firstlineno, function_name(code))
            self.begin(code, f"call of `{site.function}()`", site)
        return stepped

    def _stack(self, frame: FrameType) -> list[tuple[Activation, CodeType]]:
        found = []
        for one in self._session.frames.running(frame):
            call = activation(one) if one.f_code.co_name != "<module>" else None
            if call is not None:
                found.append((call, one.f_code))
        return found[::-1]

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
        if key not in self._session.spans and key not in self._stepwise and self._session.probe is not None:
            self._session.spans[key] = Span(name, site, self._mark(), len(self._session.ended))

    def begin_named(self, name: str, site: Site) -> None:
        """A window that the user has named begins."""
        if not self.are_named:
            self.are_named = True
            for key in [key for key, span in self._session.spans.items() if span.name != EVALUATION]:
                del self._session.spans[key]
        self.begin(name, name, site)

    def end(self, key: Hashable, again: bool = False) -> None:
        """A window has ended, and the next of its kind has begun where it does so `again`."""
        span = self._session.spans.get(key)
        if span is None or self._session.probe is None:
            return
        span.seconds.append(self._session.marks[-1].seconds)
        known = len(span.ends) >= (WANTED if not span.may_leak else LOOKED_AT[-1])
        if known and not self._looks.suspects:
            return  # a reading would tell nothing new
        span.ends.append(self._mark())
        self._decide(key, span)
        span.may_leak |= self._looks.recheck(span, again)
        if len(span.ends) in LOOKED_AT and span.may_leak:
            self._looks.look_at(span)

    def close(self) -> None:
        """The script has ended by itself: so have the calls and the evaluation under way."""
        for reference, code in reversed(self._calls):
            if reference() is None:
                self.end(code)
        self._calls.clear()
        if self._phase is not None:
            self.end(self._phase)
            self._phase = None

    # -- what becomes of them --------------------------------------------------------------------------------

    def _decide(self, key: Hashable, span: Span) -> None:
        """Whether the window is no more than a step, and whether something may leak in it."""
        number = len(span.ends)
        steps = len(self._session.ended) - span.first
        within = 3 * steps < 2 * number  # of a step there are several
        if (
            number >= STEPWISE
            and 2 * steps < 3 * number + 2
            and not (within and self._session.stepper.is_idle)
        ):
            del self._session.spans[key]
            self._stepwise.add(key)
            return
        if not steps and number >= CALLS and isinstance(key, CodeType) and self._promoted is None:
            if not self._session.ended and self._session.stepper.is_idle:
                self._promoted = key
                self._promote(span.site.function)
        span.levels.append(self._session.marks[span.ends[-1]].figures.allocated or 0)
        span.kept = self._kept(span)
        left = span.levels[-1] - span.levels[-2] if number > 1 else span.kept
        span.may_leak = left >= self._noted

    def _kept(self, span: Span) -> int:
        """Bytes from before the last window; where there is no other from that one, what its last step has in use left out."""
        probe, session = self._session.probe, self._session
        probe.settle()
        since, until = span.begun, span.ends[max(0, len(span.ends) - 2)]
        if len(span.ends) == 1:
            warm = (series.boundaries[0] for series in session.series.values() if series.boundaries)
            since = max(since, min(warm, default=0))
            until = next((mark for mark in reversed(session.ended) if since < mark < until), until)
        return sum(b.size for b in probe.blocks(since) if b.epoch < until and b.place == "device")

    @property
    def _noted(self) -> int:
        """Bytes that are worth waiting for."""
        peak = max((m.figures.peak or 0 for m in self._session.marks if m.figures is not None), default=0)
        return min(NOTED, int(NOTED_SHARE * peak))

    @property
    def missing(self) -> bool:
        """Whether a window that may leak has ended too seldom yet."""
        return any(one.may_leak and len(one.ends) < WANTED for one in self._session.spans.values())

"""When steps are judged: on the way, where the script may end by itself, and at the end. One look is `looking.look`."""

from __future__ import annotations

import contextlib
import time
from types import FrameType
from typing import Any

from gpulint.runtime.child.session import TRAINING, Session
from gpulint.runtime.record.series import Series, Window, released

LOOKS = (5, 10)  # sampled steps after which the window is judged already, in case the script ends by itself
MOST_EVALUATIONS = 12  # looks into evaluation loops that include a search for holders


class Looks:
    """The looks into the windows of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._judge: Any = None
        self._evaluations = 0
        self._judged: dict[Any, int] = {}  # evaluation loop -> steps it was judged by

    def prepare(self) -> None:
        """Import what a look needs: in the middle of a step that would take the step's time."""
        from gpulint.runtime.child import looking

        self._judge = looking.look

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
            if steps > wanted and session.probe is not None:
                session.probe.watch(False)  # no look comes any more
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
        """Judge the window so far. Keeps what earlier looks found if this one cannot say anything."""
        session = self._session
        if session.probe is None or len(series.boundaries) < 2:
            return
        session.looking = True
        begin = time.perf_counter()
        try:
            marks = series.boundaries
            until = session.marks[marks[-1 - age]].sequence if len(marks) > age else 0
            sequences = (session.marks[marks[0]].sequence, until)
            drifts, holders = self._judge(
                session.probe, session.frames, series.kind, marks, age, sequences, extra_frames, passing, last
            )
            series.window = Window(drifts, holders, len(marks) - 1)
            session.lines.judge(marks[0], marks[-1 - age] if len(marks) > age else marks[0])
        except Exception as error:
            session.notes.append(f"steps could not be judged: {type(error).__name__}: {error}")
        finally:
            session.looking = False
            session.looked += time.perf_counter() - begin

    def take_back(self) -> None:
        """Leaks of the sampled steps that the same loop has let go of since are none."""
        session = self._session
        held = session.lingering.held if session.lingering is not None else 0
        for series in (session.series[kind] for kind in TRAINING) if held else ():
            before = series.window
            if before is not None:
                self.look(series, 2)
                if series.window is not None:
                    series.window = released(before, series.window, held)

    def look_at_end(self, frames: tuple[FrameType, ...], anew: bool) -> None:
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

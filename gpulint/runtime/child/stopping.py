"""When the script has run far enough, and how it is stopped then."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from gpulint.runtime.child.looks import LOOKS, Looks
from gpulint.runtime.child.session import Lingering, Session
from gpulint.runtime.child.steps import Steps
from gpulint.runtime.child.windows import Windows
from gpulint.runtime.observing.hostmemory import read_kib
from gpulint.runtime.record.result import End, StepKind, never_used_gpu
from gpulint.runtime.record.series import GROWING

# What stands in the store
SAMPLED, CONTENT, CHOSEN, LAST = (f"gpulint/{name}" for name in ("sampled", "content", "chosen", "last"))
AHEAD = 2  # steps; nobody is further than one ahead of another, whose gradients it needs


class Agreement:
    """One rank's part in it, by way of the process group's store, which costs no collective call. `world_size` says how many
    ranks there are.

    They stop once each has sampled its steps and one has seen what it went on for: lines that only the first rank runs are not
    waited for by all.
    """

    def __init__(self, world_size: Callable[[], int]) -> None:
        self._world_size = world_size
        self._steps = 0
        self._said: set[str] = set()
        self._last: int | None = None

    def after_step(self, sampled: bool, content: bool) -> bool:
        """Whether this step of training was the last. `sampled`: this rank has what it needs; `content`: it would stop here."""
        self._steps += 1
        if not sampled and not content:
            return False
        store = _store()
        if store is None:
            return content
        with contextlib.suppress(RuntimeError, ValueError, OSError):
            return self._agreed(store, content)
        return content

    def _agreed(self, store: Any, content: bool) -> bool:
        self._say(store, SAMPLED)
        if content:
            self._say(store, CONTENT)
        if self._last is None and store.check([LAST]):
            self._last = int(store.get(LAST))
        everybody = store.add(SAMPLED, 0) >= self._world_size() and store.add(CONTENT, 0) > 0
        if self._last is None and everybody and store.add(CHOSEN, 1) == 1:
            self._last = self._steps + AHEAD
            store.set(LAST, str(self._last))
        return self._last is not None and self._steps >= self._last

    def _say(self, store: Any, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            store.add(what, 1)


def _store() -> Any:
    """The store of the script's process group; None where there is none."""
    distributed = sys.modules.get("torch.distributed.distributed_c10d")
    if distributed is None or not distributed.is_initialized():
        return None
    return distributed._get_default_store()


PATIENCE = 20.0  # seconds that an evaluation may take before the training that is to follow it is given up
AFTERWARDS = 2.0  # seconds that a trial's first run goes on after what was to be sampled, unwatched
AFTERWARDS_SHARE = 0.1  # of the time until then, where that is longer
SWALLOWED = 3  # how often the script may swallow the stop before the process is ended for it


class Stop(BaseException):
    """Ends the script once enough steps were sampled. Not an Exception: `except Exception` is not meant for
    it."""


class Stopping:
    """Decides after each step whether it was the last. `close` is told how the run ended and measures no more."""

    def __init__(
        self, session: Session, looks: Looks, steps: Steps, windows: Windows, close: Callable[[End], None]
    ) -> None:
        self._session = session
        self._looks = looks
        self._steps = steps
        self._windows = windows
        self._close = close
        self._trained = time.monotonic()  # when an optimizer was made or stepped last
        self._stops = 0
        self._begin = time.monotonic()
        self._enough_since: float | None = None
        self._lingering: Lingering | None = None  # the one that there was, whatever was sampled anew since
        self._agreement = Agreement(lambda: session.world_size)

    def trained(self) -> None:
        """An optimizer was made, or has stepped."""
        self._trained = time.monotonic()

    def stop_if_enough(self, kind: StepKind) -> None:
        """After a step."""
        enough, trial = self._enough(), self._session.options.trial
        if trial is not None and trial.is_bound:
            return
        over = enough and self._has_gone_on()
        if self._session.world_size > 1:
            over = kind != "eval" and self._agreement.after_step(self._session.lingering is not None, over)
        elif over and self._looks.piles:  # so it seemed when it was looked at last
            self._look()
            over = self._enough()
        if over:
            self.finish()

    def _look(self) -> None:
        if self._steps.evaluation is not None:
            self._looks.look(self._session.series["eval"], 2)

    def _has_gone_on(self) -> bool:
        """Whether the first run of a trial has gone on for a while after what was to be sampled: what a fix changes may show
        where a value is used later."""
        if self._session.options.trial is None:
            return True
        now = time.monotonic()
        if self._enough_since is None:
            self._enough_since = now
        until_then = self._enough_since - self._begin
        return now - self._enough_since >= max(AFTERWARDS, AFTERWARDS_SHARE * until_then)

    def stop_if_over(self) -> None:
        """Before a batch: what was waited for may have taken too long. A trial's runs end after a step, where they can be
        compared, and ranks where all of them do."""
        session = self._session
        if session.options.trial is None and session.lingering is not None and session.world_size == 1:
            if self.is_over():
                self.finish(look=False)

    def stop_if_reached(self) -> None:
        """After an event: a trial's later runs end where its first did."""
        trial, recorder, process = self._session.options.trial, self._session.recorder, self._session.process
        if trial is None or recorder is None or self._session.done:
            return
        for bound in trial.until:
            is_ours = bound.process == process and (process or bound.rank == self._session.rank)
            if is_ours and recorder.has_reached(bound.position):
                self.finish()

    def _enough(self) -> bool:
        session = self._session
        if session.endless:
            return False
        if session.lingering is not None:
            return self.is_over()
        again = self._lingering is not None and self._lingering.seconds >= self._lingering.reach
        if again or max(session.series[kind].sampled for kind in session.main_kinds) >= session.goal:
            self._linger()
            return self.is_over()
        evaluated = session.series["eval"].sampled >= session.options.steps
        return evaluated and time.monotonic() - self._trained > max(session.options.reach, PATIENCE)

    def _linger(self) -> None:
        """Enough steps are sampled. They are judged now; what comes after does not change that."""
        session = self._session
        trained = [session.series[kind] for kind in session.main_kinds]
        for series in trained:
            self._looks.look(series, 2)
        session.lines.settle()
        session.peaking.end_sampling()
        if session.recorder is not None:
            with session.aside():
                session.recorder.weigh("after the sampled steps")
        reach = session.options.reach
        first = min((s.seconds - s.duration for series in trained for s in series.samples), default=0.0)
        sampling = session.marks[-1].seconds - first
        self._lingering = self._lingering or Lingering(reach, sampling, session.clock)
        lingering = session.lingering = self._lingering
        lingering.awaiting = bool(reach) and self._misses_something()
        windows = [series.window for series in trained if series.window is not None]
        leaks = [d for window in windows for d in window.drifts if d.status in GROWING]
        nodes = any(holder.nodes for window in windows for holder in window.holders)
        if reach and session.world_size == 1 and (leaks or nodes or session.options.trial is None):
            growth = sum(drift.bytes_per_step for drift in leaks)
            free = session.probe.free() or read_kib("/proc/meminfo", "MemAvailable:")
            lingering.hold(self._windows.around, growth, free)
        session.attributing = self._patrols
        session.watch_more(False)

    def is_over(self) -> bool:
        """Whether enough steps are sampled and nothing is left to go on for."""
        session = self._session
        lingering = session.lingering
        if lingering is None or lingering.seconds >= lingering.reach:
            return lingering is not None
        if session.stepper.in_phase and session.stepper.has_optimizer:
            lingering.loop_is_over()
        if lingering.awaiting:
            few = len(session.series["eval"].boundaries) <= LOOKS[-1] + 1
            if (session.stepper.in_phase and few) or self._misses_something():
                return False
        return not (lingering.holding or self._patrols)

    @property
    def _patrols(self) -> bool:
        """Whether growth may begin yet, or windows have come round too seldom. What grows from step to step, and does not stop, is known
        without them."""
        session, lingering = self._session, self._session.lingering
        if lingering is None or session.world_size > 1:
            return False
        going = lingering.seconds < lingering.patrol and (lingering.holding or not self._looks.piles)
        return self._windows.missing or (
            going and (session.options.trial is None or self._windows.mark_open())
        )

    def _misses_something(self) -> bool:
        """Whether places of interest, or the evaluation that is to be expected, have not run as far as they are needed."""
        session = self._session
        # Ranks must stop at the same step, and what only one of them waits for would not let them.
        trains = session.options.evaluates and session.stepper.has_optimizer
        unseen = trains and not self._steps.evaluated and session.world_size == 1
        alone = session.world_size == 1 and self._windows.missing
        return unseen or alone or session.lines.missing(session.options.awaited)

    def finish(self, look: bool = True) -> None:
        """End the script. Without `look` the loop that was judged last may be over."""
        session = self._session
        if look:
            self._look()
            self._windows.look_again()
        self._looks.take_back()
        self._windows.mark_open()
        said = End("stopped", f"stopped after {session.sampled} sampled steps")
        if session.asked_for_cuda_in_vain:
            said = End("no-device", never_used_gpu(session.options.limited))
        self._close(said)
        self.raise_stop()

    def raise_again(self) -> None:
        """Stop a script that has swallowed the stop."""
        if self._stops:
            self.raise_stop()

    def raise_stop(self) -> None:
        """Raise `Stop`, or end the process where the script does not let go, or where it would end one thread alone."""
        self._stops += 1
        if self._stops > SWALLOWED or threading.current_thread() is not threading.main_thread():
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(0)
        raise Stop

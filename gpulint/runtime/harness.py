"""The child side: watches the script from within, decides when to stop, and tells the parent what it saw."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any

from gpulint import marks
from gpulint.runtime import drift
from gpulint.runtime.calls import Calls, collect
from gpulint.runtime.frames import Frames
from gpulint.runtime.hostmemory import HostMemory
from gpulint.runtime.importing import ImportHook
from gpulint.runtime.lines import LineCounter
from gpulint.runtime.result import (
    CallFigures,
    End,
    Environment,
    ForwardFigures,
    Options,
    Progress,
    RankResult,
    Sample,
    StepKind,
    Trend,
)
from gpulint.runtime.series import Mark, Series, Window, sample_of, united
from gpulint.runtime.stepping import Stepper

CUT = "Epochs were cut short, to reach lines that had not run when enough steps were sampled."
KINDS: tuple[StepKind, ...] = ("train", "eval", "explicit")
FEWEST_WARMUP = 3
MOST_WARMUP = 10
SWALLOWED = 3  # how often the script may swallow the stop before the process is ended for it
LOOKS = (5, 10)  # sampled steps after which the window is judged already, in case the script ends by itself
EARLY = (1, 2, 3, 6)  # sampled steps whose readings the looks need, to tell enough stretches apart
MOST_READINGS = 50  # in one evaluation loop, for loops too short to be judged
MOST_EVALUATIONS = 12  # looks into evaluation loops that include a search for holders


class Stop(BaseException):
    """Ends the script once enough steps were sampled. Not an Exception: `except Exception` is not meant for
    it."""


class Harness:
    """Everything that happens in the child. `send` takes one message for the parent; `endless` never stops
    the script."""

    def __init__(
        self, options: Options, home: str, send: Callable[[dict[str, Any]], None], endless: bool = False
    ) -> None:
        self.options = options
        self.frames = Frames(home)
        self.probe: Any = None
        self.done = False
        self._endless = endless
        self._send = send
        self._begin = time.perf_counter()
        self._looked = 0.0  # seconds spent in looks, which are not the script's
        self._memory = HostMemory()
        self._marks: list[Mark] = []
        self._series: dict[StepKind, Series] = {kind: Series(kind) for kind in KINDS}
        self._stepper = Stepper(self._mark, self._confirm)
        self._calls = Calls(self.frames, self._reserved)
        self._lines = LineCounter(options.lines, self._tensor_bytes)
        self._forwards: Any = None
        self._torch: Any = None
        self._optimizers: dict[int, Any] = {}
        self._iterator: Any = None  # the DataLoader iterator that gave the last batch
        self._trained_from: weakref.WeakSet[Any] = weakref.WeakSet()
        self._cut = False
        self._state_sizes: list[int] = []
        self._evaluations = 0
        self._waiting_since: float | None = None
        self._readings: Counter[Any] = Counter()  # evaluation loop -> marks taken in it
        self._judged: dict[Any, int] = {}  # evaluation loop -> steps it was judged by
        self._stops = 0
        self._notes: list[str] = []
        self._main = threading.get_ident()
        self._looking = False
        self._undo: list[Callable[[], None]] = []

    # -- start and stop --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Arm everything that needs no torch; the rest follows when the script imports it."""
        if "torch" in sys.modules:
            self._torch_imported(sys.modules["torch"])
            if hasattr(self.probe, "adopt"):
                self.probe.adopt()
        else:
            ImportHook("torch", self._torch_imported).install()
        os.register_at_fork(after_in_child=self._forked)
        self._calls.watch_collector()
        self._lines.start()
        marks._listener = self.step

    def compile(self, source: bytes, path: str) -> CodeType:
        """The code of the script, watched where it has lines of interest."""
        return self._lines.compile(source, path)

    def _forked(self) -> None:
        """In a forked process (a DataLoader worker, say): be gone."""
        self.done = True
        marks._listener = None
        if self.probe is not None and hasattr(self.probe, "active"):
            self.probe.active = False
        self._lines.active = False
        if self._forwards is not None:
            self._forwards.active = False
        self._send = lambda message: None

    def _torch_imported(self, torch: ModuleType) -> None:
        try:
            self._watch_torch(torch)
        except Exception as error:
            self._notes.append(f"torch could not be watched: {type(error).__name__}: {error}")

    def _watch_torch(self, torch: Any) -> None:
        from gpulint.runtime import watching

        self._torch = torch
        folder = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self.frames.foreign = (folder,)
        self.probe = watching.make_probe(self.options.device, self.frames)
        self._undo.append(watching.watch_optimizers(self._optimizer_made, self._optimizer_stepped))
        self._undo.append(watching.watch_scalers(self._optimizer_stepped))
        self._undo.append(watching.watch_loaders(self._batch, self._loading))
        from gpulint.runtime.forwards import Forwards

        self._forwards = Forwards(self.frames, self._forward, self.probe.allocated)
        self._forwards.start()
        self.probe.start()
        self._calls.watch_torch(torch)
        self._lines.probe = self.probe
        self._lines.is_compiling = torch.compiler.is_compiling

    def _rest(self) -> None:
        """Measure no more. The hooks that see steps stay, to stop the script again if it swallows the
        stop."""
        self._lines.stop()
        self._calls.stop()
        if self.probe is not None:
            self.probe.stop()

    def stop_watching(self) -> None:
        """Take every hook out, so that the interpreter can end in peace."""
        self._rest()
        marks._listener = None
        if self._forwards is not None:
            self._forwards.stop()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    # -- events ----------------------------------------------------------------------------------------------

    def _here(self) -> bool:
        """Whether an event counts: on the script's main thread, and not from our own doing. Also stops a
        script that has swallowed the stop."""
        if self._looking or threading.get_ident() != self._main:
            return False
        if self.done:
            if self._stops:
                self._raise_stop()
            return False
        return True

    def step(self) -> None:
        """`gpulint.step()` was called."""
        if self._here():
            self._stepper.explicit()

    def _forward(self, module: Any) -> None:
        if self._here():
            training = bool(module.training)
            if training and next(module.parameters(), None) is None:
                return  # a criterion: it is in train mode in evaluations too
            # Loops that evaluate the same model one after the other are told apart by who called it.
            where = 0 if training and self._stepper.has_optimizer else self.frames.stack(sys._getframe(1))
            self._stepper.forward((id(module), where), training)

    def _batch(self, iterator: Any) -> bool:
        """A DataLoader's iterator is asked for a batch; returns whether it shall say that it has no more."""
        if not self._here():
            return False
        self._iterator = weakref.ref(iterator)
        if self._waiting_since is not None:
            if not self._waits():
                self._finish(look=False)  # the loop that was judged last may be over
            judged = self._stepper.in_phase and len(self._series["eval"].boundaries) > LOOKS[-1] + 1
            if judged or iterator in self._trained_from:
                self._cut = True
                return True
        self._stepper.batch(id(iterator))
        return False

    def _loading(self, change: int) -> None:
        if threading.get_ident() == self._main and hasattr(self.probe, "loading"):
            self.probe.loading += change

    def _optimizer_made(self, optimizer: Any) -> None:
        self._stepper.optimizer_created()
        if threading.get_ident() == self._main and not self.done:
            self._begin_other_training(optimizer)

    def _optimizer_stepped(self, optimizer: Any) -> None:
        if not self._here():
            return
        self._optimizers[id(optimizer)] = weakref.ref(optimizer)
        iterator = self._iterator() if self._iterator is not None else None
        if iterator is not None:
            self._trained_from.add(iterator)
        parameters = next((p for group in optimizer.param_groups for p in group["params"]), optimizer)
        self._stepper.optimizer(id(parameters), id(optimizer))

    # -- marks and steps -------------------------------------------------------------------------------------

    def _mark(self) -> int:
        number = len(self._marks)
        figures = self.probe.mark(self._wants_reading()) if self.probe is not None else None
        heap = self._memory.heap()
        if heap is not None and self.probe is not None:
            heap -= self.probe.raw_bytes()
        sequence = 0
        if self._torch is not None:
            with contextlib.suppress(AttributeError):
                sequence = self._torch._C._autograd._get_sequence_nr()
        now = time.perf_counter() - self._begin - self._looked
        self._marks.append(Mark(now, figures, self._memory.rss(), heap, sequence))
        return number

    def _wants_reading(self) -> bool:
        """Whether attribution needs the mark that is being taken: in warm-up (the last one is the baseline),
        at a few points of the window, and some steps before each look, because what is younger than that is
        not judged."""
        if self._stepper.in_phase:
            phase = self._stepper.phase
            self._readings[phase] += 1
            return self._evaluations < MOST_EVALUATIONS and self._readings[phase] < MOST_READINGS
        series = self._series["explicit" if self._series["explicit"].count else "train"]
        if not series.warm:
            return True
        wanted, following = self.options.steps, len(series.boundaries)
        return following in {*EARLY, wanted // 3, 2 * wanted // 3, wanted - 2, *(look - 2 for look in LOOKS)}

    def _confirm(self, kind: StepKind, previous: int, mark: int) -> None:
        if self.done:
            return
        series = self._series[kind]
        if self._waiting_since is None or kind == "eval":
            self._record(series, previous, mark)
        if self._enough():
            self._finish()

    def _record(self, series: Series, previous: int, mark: int) -> None:
        series.count += 1
        if series.kind == "eval" and (not series.boundaries or series.boundaries[-1] != previous):
            self._begin_phase(series, previous)
        sampled = series.warm and bool(series.boundaries)
        sample = sample_of(self._marks, series, previous, mark, sampled)
        series.samples.append(sample)
        if series.warm:
            series.boundaries.append(mark)
            series.sampled += sampled
        elif self._is_warm(series):
            series.warm, series.warmup = True, series.count - series.begun
            series.boundaries = [mark]
            self._begin_sampling()
        self._tell(series, sample)
        self._look_if_due(series)

    def _begin_phase(self, series: Series, mark: int) -> None:
        """An evaluation loop begins: its first step is warm-up, whatever came before."""
        series.archive()
        series.boundaries = [] if series.warm else [mark]

    def _begin_other_training(self, optimizer: Any) -> None:
        """A loop with an optimizer for parameters that were never stepped is another training: it warms up
        anew, and what its steps leave behind is not measured against the steps of the one before."""
        series = self._series["train"]
        known = {id(p) for one in self._optimizers.values() for p in _parameters(one())}
        if len(series.boundaries) <= LOOKS[-1] or any(id(p) in known for p in _parameters(optimizer)):
            return
        series.archive()
        series.boundaries, series.warm, series.begun = [], False, series.count
        self._state_sizes.clear()

    def _begin_sampling(self) -> None:
        self._calls.sampling = True
        self._lines.sampling = True
        if self.probe is not None:
            collect(1)

    def _is_warm(self, series: Series) -> bool:
        if self.options.warmup is not None:
            return series.count - series.begun >= self.options.warmup
        if series.kind == "eval":
            return series.count >= 1
        self._state_sizes.append(self._optimizer_bytes())
        warmed = series.count - series.begun
        if warmed < FEWEST_WARMUP:
            return False
        return warmed >= MOST_WARMUP or drift.optimizer_settled(self._state_sizes)

    def _optimizer_bytes(self) -> int:
        total = 0
        for reference in self._optimizers.values():
            optimizer = reference()
            for values in () if optimizer is None else list(optimizer.state.values()):
                if isinstance(values, dict):
                    total += sum(self._tensor_bytes(value) or 0 for value in values.values())
        return total

    def _tensor_bytes(self, value: Any) -> int | None:
        if self._torch is None or not isinstance(value, self._torch.Tensor):
            return None
        with contextlib.suppress(NotImplementedError, RuntimeError):
            return int(value.untyped_storage().nbytes())
        return None

    def _tell(self, series: Series, sample: Sample) -> None:
        drifted = None
        if sample.sampled and sample.allocated is not None:
            base = next((s.allocated for s in reversed(series.samples) if not s.sampled), None)
            drifted = None if base is None else sample.allocated - base
        wanted = self.options.steps + series.warmup
        progress = Progress(self._rank, sample, wanted, drifted)
        self._send({"progress": progress.to_json()})

    @property
    def _rank(self) -> int:
        return int(os.environ.get("RANK", "0"))

    def _reserved(self) -> int | None:
        if self._torch is None or self.probe is None or self.probe.name != "cuda-allocator":
            return None
        return int(self._torch.cuda.memory_reserved())

    # -- looking ---------------------------------------------------------------------------------------------

    def _look_if_due(self, series: Series) -> None:
        steps = len(series.boundaries) - 1
        if series.kind == "eval":
            phase = self._stepper.phase  # a loop that has run before is not judged again
            if steps in (4, *LOOKS, self.options.steps) and steps > self._judged.get(phase, 0):
                if self._evaluations >= MOST_EVALUATIONS:
                    return
                self._judged[phase] = steps
                self._evaluations += 1
                self._look(series, 1 if steps < 6 else 2)
        elif series.warm and (
            steps in LOOKS if steps < self.options.steps else self._endless and steps == self.options.steps
        ):
            self._look(series, 2)

    def _look(self, series: Series, age: int, extra_frames: tuple[FrameType, ...] = ()) -> None:
        """Judge the window so far. Keeps what earlier looks found if this one cannot say anything."""
        if self.probe is None or len(series.boundaries) < 2:
            return
        from gpulint.runtime.looking import look

        self._looking = True
        begin = time.perf_counter()
        try:
            marks = series.boundaries
            until = self._marks[marks[-1 - age]].sequence if len(marks) > age else 0
            sequences = (self._marks[marks[0]].sequence, until)
            drifts, holders = look(self.probe, self.frames, series.kind, marks, age, sequences, extra_frames)
            series.window = Window(drifts, holders, len(marks) - 1)
        except Exception as error:
            self._notes.append(f"steps could not be judged: {type(error).__name__}: {error}")
        finally:
            self._looking = False
            self._looked += time.perf_counter() - begin

    def _enough(self) -> bool:
        if self._endless:
            return False
        wanted = self.options.steps
        train, evaluation, explicit = (self._series[kind].sampled for kind in KINDS)
        if explicit >= wanted or train >= wanted:
            return not self._waits()
        if self._stepper.has_optimizer:
            return evaluation >= 20 * wanted
        return evaluation >= wanted

    def _waits(self) -> bool:
        """Whether to go on, although enough steps are sampled, because awaited lines have not run yet."""
        if not self.options.reach or not self.options.awaited:
            return False
        now = time.monotonic()
        if self._waiting_since is None:
            if not self._lines.missing(self.options.awaited):
                return False
            self._waiting_since = now
            for kind in ("train", "explicit"):
                self._look(self._series[kind], 2)
        if now - self._waiting_since > self.options.reach:
            return False
        evaluating = self._stepper.in_phase and len(self._series["eval"].boundaries) <= LOOKS[-1] + 1
        return evaluating or self._lines.missing(self.options.awaited)

    def _finish(self, look: bool = True) -> None:
        for series in self._series.values() if look else ():
            waited = (
                self._waiting_since is not None
            )  # then the others were judged when their steps were sampled
            if self._stepper.in_phase if series.kind == "eval" else not waited:
                self._look(series, 2)
        steps = max(series.sampled for series in self._series.values())
        self.report(End("stopped", f"stopped after {steps} sampled steps"))
        self._rest()
        self._raise_stop()

    def _raise_stop(self) -> None:
        self._stops += 1
        if self._stops > SWALLOWED:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(0)
        raise Stop

    # -- the result ------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Steps of any kind so far, warm-up included."""
        return sum(series.count for series in self._series.values())

    @property
    def counts(self) -> dict[StepKind, int]:
        """`steps` by kind."""
        return {kind: series.count for kind, series in self._series.items()}

    @property
    def saw_torch(self) -> bool:
        """Whether the script has imported torch."""
        return self._torch is not None

    @property
    def sampled(self) -> int:
        """The steps sampled of the kind of which there are most."""
        return max(series.sampled for series in self._series.values())

    def look_at_end(self, frames: tuple[FrameType, ...], anew: bool = True) -> None:
        """A last look while a traceback, or a main thread that hangs, still holds the script's frames. Not
        `anew`: only where nothing was judged yet."""
        for series in self._series.values():
            if series.window is not None and not anew:
                continue
            if (
                series.warm
                and len(series.boundaries) > 3
                and (series.kind != "eval" or self._stepper.in_phase)
            ):
                with contextlib.suppress(Exception):
                    self._look(series, 2, frames)

    def report(self, end: End) -> None:
        """Send the result, once."""
        if self.done:
            return
        self.done = True
        self._send({"result": self.result(end).to_json()})

    def result(self, end: End) -> RankResult:
        """Everything measured so far."""
        samples = sorted(
            (s for series in self._series.values() for s in series.samples), key=lambda s: s.seconds
        )
        drifts, found = united(list(self._series.values()))
        notes = [
            *self._notes,
            *([CUT] if self._cut else []),
            *(self.probe.notes() if self.probe is not None else []),
        ]
        return RankResult(
            rank=self._rank,
            world_size=int(os.environ.get("WORLD_SIZE", "1")),
            environment=self._environment(),
            end=end,
            boundary=self._stepper.boundary,
            warmup=max(series.warmup for series in self._series.values()),
            samples=tuple(samples),
            drifts=drifts,
            holders=found,
            trends=tuple(self._trends()),
            lines=tuple(self._lines.figures()),
            calls=tuple(self._call_figures()),
            forwards=tuple(self._forward_figures()),
            notes=tuple(notes),
        )

    def _trends(self) -> list[Trend]:
        found: list[Trend] = []
        for series in self._series.values():
            found.extend(drift.trends(series.kind, [s for s in series.samples if s.sampled]))
        return found

    def _call_figures(self) -> list[CallFigures]:
        return self._calls.figures()

    def _forward_figures(self) -> list[ForwardFigures]:
        return self._forwards.figures() if self._forwards is not None else []

    def _environment(self) -> Environment:
        base: dict[str, Any] = {
            "python": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        }
        if self._torch is None or self.probe is None:
            return Environment(**base)
        from gpulint.runtime import watching

        return Environment(**base, **watching.environment(self.probe.name))


def _parameters(optimizer: Any) -> list[Any]:
    groups = getattr(optimizer, "param_groups", ())
    return [parameter for group in groups for parameter in group["params"]]

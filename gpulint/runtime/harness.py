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
from gpulint.runtime.lingering import Lingering, free_host_memory
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
from gpulint.runtime.series import Mark, Series, Window, released, sample_of, united
from gpulint.runtime.stepping import Stepper

CUT = "Epochs were cut short (--cut-epochs), to reach lines that had not run when enough steps were sampled."
UNUSED = "The script does not use the GPU of this machine: what it keeps was measured on the host instead."
KINDS: tuple[StepKind, ...] = ("train", "eval", "explicit")
TRAINING: tuple[StepKind, ...] = ("train", "explicit")
FEWEST_WARMUP = 3
MOST_WARMUP = 10
PATIENCE = 20.0  # seconds that an evaluation may take before the training that is to follow it is given up
SWALLOWED = 3  # how often the script may swallow the stop before the process is ended for it
LOOKS = (5, 10)  # sampled steps after which the window is judged already, in case the script ends by itself
EARLY = (1, 2, 3, 6)  # sampled steps whose readings the looks need, to tell enough stretches apart
MOST_READINGS = 50  # in one evaluation loop, for loops too short to be judged
ENOUGH_LOOPS = 3  # samplings of an evaluation loop after which it is left alone, once training is sampled
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
        self._unwatched = False  # what comes now is a training step after the sampled ones
        self._series: dict[StepKind, Series] = {kind: Series(kind) for kind in KINDS}
        self._stepper = Stepper(self._mark, self._confirm)
        self._calls = Calls(self.frames, self._reserved)
        self._lines = LineCounter(options.lines, self._tensor_bytes)
        self._forwards: Any = None
        self._torch: Any = None
        self._judge: Any = None
        self._optimizers: dict[int, Any] = {}
        self._optimizing = False  # whether the script has an optimizer of torch's
        self._iterator: Any = None  # the DataLoader iterator that gave the last batch
        # DataLoader iterator -> optimizer steps since its present pass began
        self._passes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._cut = False
        self._evaluated = False  # whether an evaluation was sampled since training is
        self._evaluation: Any = None  # the evaluation loop under way, once it is known to be one
        self._state_sizes: list[int] = []
        self._caller = 0  # who called the outermost module last, as a number
        self._evaluations = 0
        self._loops: Counter[Any] = Counter()  # how often each evaluation loop was sampled, by who called it
        self._cuda: Any = None  # the probe to come back to, once a script uses the GPU after all
        self._lingering: Lingering | None = None
        self._trained = time.monotonic()  # when an optimizer was made or stepped last
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
        from gpulint.runtime import looking, watching

        self._judge = looking.look  # imported now: in the middle of a step it would take that step's time
        self._torch = torch
        folder = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self.frames.foreign = (folder,)
        if self.options.device == "cuda" and not watching.has_cuda():
            self.report(End("no-device", watching.why_no_cuda()))
            self._raise_stop()
        self.probe = watching.make_probe(self.options.device, self.frames)
        self._undo.append(watching.watch_optimizers(self._optimizer_made, self._optimizer_stepped))
        self._undo.append(watching.watch_scalers(self._optimizer_stepped))
        self._undo.append(watching.watch_loaders(self._batch, self._pass_ended, self._loading))
        self._undo.append(watching.watch_replays(self._replayed))
        self._undo.append(watching.watch_backwards(self._backward))
        from gpulint.runtime.forwards import Forwards

        self._forwards = Forwards(self.frames, self._forward, self.probe.allocated)
        self._forwards.start()
        self.probe.start()
        self.probe.watch(self._fewest_warmup < 2)
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

    # -- which probe -----------------------------------------------------------------------------------------

    def _check_device(self) -> None:
        """Before a mark: on a machine with a GPU that the script leaves alone, what it keeps is on the host."""
        if self.probe.name == "cuda-allocator" and self.options.device == "auto" and not self.probe.used():
            from gpulint.runtime.probes.host import HostProbe

            self.probe.on_first_use = self._use_cuda
            self._cuda = self.probe
            host = HostProbe(self.frames)
            host.start()
            host.adopt(parameters_on_device=True)
            self._switch(host)

    def _use_cuda(self) -> None:
        """The script has begun to use CUDA after all."""
        if self._cuda is not None and not self.done:
            self.probe.stop()
            self._switch(self._cuda)
            self._cuda = None

    def _switch(self, probe: Any) -> None:
        """Measure with another probe from here on. Every series begins anew: their figures do not compare."""
        probe.skip_to(len(self._marks))
        self.probe = self._lines.probe = probe
        self._forwards.allocated = probe.allocated
        for series in self._series.values():
            self._begin_anew(series)

    # -- events of the script --------------------------------------------------------------------------------

    def step(self) -> None:
        """`gpulint.step()` was called."""
        if self._here():
            self._unwatched = self._lingering is not None
            self._stepper.explicit()

    def _forward(self, module: Any) -> None:
        if self._here():
            training = bool(module.training)
            if training and next(module.parameters(), None) is None:
                return  # a criterion: it is in train mode in evaluations too
            trains = training and self._stepper.has_optimizer
            # Loops that evaluate the same model one after the other are told apart by who called it.
            where = 0 if trains else self.frames.stack(sys._getframe(1))
            self._caller = where
            self._unwatched = self._is_known(trains, ("forward", (id(module), where)))
            self._stepper.forward((id(module), where), training)
            self._check_evaluation()

    def _is_known(self, trains: bool, loop: Any) -> bool:
        """Whether a step of this kind would tell nothing new: training once enough of it is sampled, an evaluation loop
        once enough of its steps are, or once it was sampled often enough."""
        if self._endless:
            return False
        if self._lingering is not None and (trains or self._loops[self._caller] >= ENOUGH_LOOPS):
            return True
        long = len(self._series["eval"].boundaries) > self.options.steps + 1
        return long and not trains and self._stepper.has_optimizer and self._stepper.phase == loop

    def _batch(self, iterator: Any) -> bool:
        """A DataLoader's iterator is asked for a batch; returns whether it shall say that it has no more."""
        if not self._here():
            return False
        self._iterator = weakref.ref(iterator)
        if self._lingering is not None and self._over():
            self._finish(look=False)  # the loop that was judged last may be over
        if self._may_cut(iterator):
            self._cut = True
            self._pass_ended(iterator)
            return True
        self._stepper.batch(id(iterator))
        return False

    def _may_cut(self, iterator: Any) -> bool:
        """Whether the pass may end here: it has trained, so that no loop is cut to nothing, it is no evaluation's, and
        no other rank would wait for this one."""
        return (
            self.options.cut_epochs
            and self._lingering is not None
            and self._lingering.awaiting
            and self._world_size == 1
            and self._passes.get(iterator, 0) > 0
            and not self._stepper.in_phase
        )

    def _pass_ended(self, iterator: Any) -> None:
        """A DataLoader's iterator has given its last batch, or begins anew."""
        if self._passes.pop(iterator, 0) and self._lingering is not None:
            self._lingering.loop_is_over()

    def _backward(self) -> None:
        """Where a script has no optimizer of torch's, and so updates by hand, its backwards are the steps."""
        if not self._optimizing and self._here():
            self._unwatched = self._lingering is not None
            self._stepper.optimizer("backward", 0)
            self._check_evaluation()

    def _replayed(self, graph: Any) -> None:
        if self._here():
            self._unwatched = self._lingering is not None
            self._stepper.replay(id(graph))

    def _loading(self, change: int) -> None:
        if threading.get_ident() == self._main and hasattr(self.probe, "loading"):
            self.probe.loading += change

    def _optimizer_made(self, optimizer: Any) -> None:
        self._optimizing = True
        self._stepper.optimizer_created()
        self._trained = time.monotonic()
        if threading.get_ident() == self._main and not self.done:
            self._begin_other_training(optimizer)

    def _optimizer_stepped(self, optimizer: Any) -> None:
        if not self._here():
            return
        self._optimizing = True
        self._optimizers[id(optimizer)] = weakref.ref(optimizer)
        self._trained = time.monotonic()
        iterator = self._iterator() if self._iterator is not None else None
        if iterator is not None:
            self._passes[iterator] = self._passes.get(iterator, 0) + 1
        parameters = next((p for group in optimizer.param_groups for p in group["params"]), optimizer)
        self._unwatched = self._lingering is not None
        self._stepper.optimizer(id(parameters), id(optimizer))
        self._check_evaluation()

    # -- marks and steps -------------------------------------------------------------------------------------

    def _mark(self) -> int:
        if self._unwatched and self._marks:
            return len(self._marks) - 1
        if self.probe is not None:
            self._check_device()
        number = self._lines.mark = len(self._marks)
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
            return self._is_to_be_judged(phase) and self._readings[phase] < MOST_READINGS
        series = self._series["explicit" if self._series["explicit"].count else "train"]
        if not series.warm:
            return series.count - series.begun >= self._fewest_warmup - 1
        wanted, following = self.options.steps, len(series.boundaries)
        return following in {*EARLY, wanted // 3, 2 * wanted // 3, wanted - 2, *(look - 2 for look in LOOKS)}

    def _confirm(self, kind: StepKind, previous: int, mark: int) -> None:
        if self.done:
            return
        series = self._series[kind]
        if self._lingering is not None and kind != "eval":
            self._lingering.step()
        elif not self._unwatched:
            self._record(series, previous, mark)
        if self._enough():
            self._finish()

    def _record(self, series: Series, previous: int, mark: int) -> None:
        series.count += 1
        if self.options.warmup == 0 and not series.warm and previous >= 0:
            self._sample_from(series, previous)
        elif series.kind == "eval" and (not series.boundaries or series.boundaries[-1] != previous):
            self._begin_phase(series, previous)
        sampled = series.warm and bool(series.boundaries)
        sample = sample_of(self._marks, series, previous, mark, sampled)
        series.samples.append(sample)
        if series.warm:
            series.boundaries.append(mark)
            series.sampled += sampled
        elif self._is_warm(series):
            series.warmup = series.count - series.begun
            self._sample_from(series, mark)
        elif self.probe is not None and series.count - series.begun >= self._fewest_warmup - 1:
            self.probe.watch(True)  # warm-up is found to be over one step late
        self._tell(series, sample)
        self._look_if_due(series)

    def _begin_phase(self, series: Series, mark: int) -> None:
        """An evaluation loop begins: its first step is warm-up, whatever came before."""
        series.archive()
        self._loops[self._caller] += 1
        series.boundaries = [] if series.warm and self.options.warmup != 0 else [mark]
        self._evaluation = self._stepper.phase
        self._watch_more(self._lingering is not None or series.warm)
        if self.probe is not None and not self._is_to_be_judged(self._evaluation):
            self.probe.watch(False)

    def _check_evaluation(self) -> None:
        """After an event: what ran in an evaluation loop that is over now was sampled as far as it goes."""
        if self._evaluation is None or self._stepper.phase == self._evaluation:
            return
        self._evaluation = None
        trained = any(self._series[kind].warm for kind in TRAINING)
        if trained or not self._stepper.has_optimizer:
            self._evaluated = True
            self._lines.settle()
        else:
            self._lines.forget()
        self._watch_more(self._lingering is None and (trained or not self._stepper.has_optimizer))

    def _watch_more(self, sampling: bool) -> None:
        """Watch closely while steps are sampled; between, watch for what is to come alone."""
        self._lines.sampling = self._calls.sampling = sampling
        if self._forwards is not None:
            self._forwards.resting = self._lingering is not None and not sampling
        if self.probe is not None:
            self.probe.watch(sampling)

    def _begin_other_training(self, optimizer: Any) -> None:
        """A loop with an optimizer for parameters that were never stepped is another training: it warms up
        anew, and what its steps leave behind is not measured against the steps of the one before."""
        series = self._series["train"]
        known = {id(p) for one in self._optimizers.values() for p in _parameters(one())}
        if len(series.boundaries) <= LOOKS[-1] or any(id(p) in known for p in _parameters(optimizer)):
            return
        self._begin_anew(series)

    def _begin_anew(self, series: Series) -> None:
        series.archive()
        series.boundaries, series.warm, series.begun = [], False, series.count
        self._state_sizes.clear()

    def _sample_from(self, series: Series, mark: int) -> None:
        """Warm-up is over: the steps from this mark on are sampled."""
        series.warm, series.boundaries = True, [mark]
        if series.kind != "eval":
            self._lines.forget()
        self._watch_more(True)
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

    @property
    def _fewest_warmup(self) -> int:
        return FEWEST_WARMUP if self.options.warmup is None else self.options.warmup

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

    def _tell_waiting(self) -> None:
        """Tell the parent why the script goes on although enough steps are sampled."""
        samples = self._series["train"].samples or self._series["explicit"].samples
        if self._lingering is None or self._over() or not samples:
            return
        why = "is what leaks let go of?"
        if self._lines.missing(self.options.awaited):
            why = "lines with findings have not run yet"
        elif self._lingering.awaiting:
            why = "no evaluation has run yet"
        self._send({"progress": Progress(self._rank, samples[-1], 0, None, why).to_json()})

    @property
    def _rank(self) -> int:
        return int(os.environ.get("RANK", "0"))

    @property
    def _world_size(self) -> int:
        return int(os.environ.get("WORLD_SIZE", "1"))

    def _reserved(self) -> int | None:
        if self._torch is None or self.probe is None or self.probe.name != "cuda-allocator":
            return None
        return int(self._torch.cuda.memory_reserved())

    # -- looking ---------------------------------------------------------------------------------------------

    def _look_if_due(self, series: Series) -> None:
        steps = len(series.boundaries) - 1
        if series.kind == "eval":
            if steps in (4, *LOOKS, self.options.steps) and self._is_to_be_judged(self._stepper.phase, steps):
                self._judged[self._stepper.phase] = steps
                self._evaluations += 1
                self._look(series, 1 if steps < 6 else 2, passing=steps <= LOOKS[-1])
            if steps > self.options.steps and self.probe is not None:
                self.probe.watch(False)  # no look comes any more
        elif series.warm and (
            steps in LOOKS if steps < self.options.steps else self._endless and steps == self.options.steps
        ):
            self._look(series, 2, passing=steps <= LOOKS[-1])

    def _is_to_be_judged(self, phase: Any, steps: int = LOOKS[-1]) -> bool:
        """Whether a look at so many steps of an evaluation loop is due: one that has run before as long is not judged
        again."""
        return self._evaluations < MOST_EVALUATIONS and self._judged.get(phase, 0) < steps

    def _look(
        self, series: Series, age: int, extra_frames: tuple[FrameType, ...] = (), passing: bool = False
    ) -> None:
        """Judge the window so far. Keeps what earlier looks found if this one cannot say anything."""
        if self.probe is None or len(series.boundaries) < 2:
            return
        self._looking = True
        begin = time.perf_counter()
        try:
            marks = series.boundaries
            until = self._marks[marks[-1 - age]].sequence if len(marks) > age else 0
            sequences = (self._marks[marks[0]].sequence, until)
            drifts, holders = self._judge(
                self.probe, self.frames, series.kind, marks, age, sequences, extra_frames, passing
            )
            series.window = Window(drifts, holders, len(marks) - 1)
            self._lines.judge(marks[0], marks[-1 - age] if len(marks) > age else marks[0])
        except Exception as error:
            self._notes.append(f"steps could not be judged: {type(error).__name__}: {error}")
        finally:
            self._looking = False
            self._looked += time.perf_counter() - begin

    def _enough(self) -> bool:
        if self._endless:
            return False
        if self._lingering is not None:
            return self._over()
        wanted = self.options.steps
        train, evaluation, explicit = (self._series[kind].sampled for kind in KINDS)
        if explicit >= wanted or train >= wanted:
            self._linger()
            return self._over()
        if evaluation < wanted or not self._stepper.has_optimizer:
            return evaluation >= wanted
        return time.monotonic() - self._trained > max(self.options.reach, PATIENCE)

    def _linger(self) -> None:
        """Enough steps are sampled. They are judged now; what comes after does not change that."""
        trained = [self._series[kind] for kind in TRAINING]
        for series in trained:
            self._look(series, 2)
        self._lines.settle()
        reach = self.options.reach
        self._lingering = Lingering(reach, bool(reach) and self._misses_something())
        windows = [series.window for series in trained if series.window is not None]
        leaks = [d for window in windows for d in window.drifts if d.status == "leak"]
        nodes = any(holder.nodes for window in windows for holder in window.holders)
        if reach and (leaks or nodes) and self._world_size == 1:
            growth = sum(drift.bytes_per_step for drift in leaks)
            free = self.probe.free() if self.probe is not None else None
            self._lingering.hold(self.frames.running(sys._getframe()), growth, free or free_host_memory())
        self._watch_more(False)
        self._tell_waiting()

    def _over(self) -> bool:
        """Whether enough steps are sampled and nothing is left to go on for."""
        lingering = self._lingering
        if lingering is None or lingering.expired:
            return lingering is not None
        if self._stepper.in_phase:
            lingering.loop_is_over()
        if lingering.awaiting:
            evaluating = self._stepper.in_phase and len(self._series["eval"].boundaries) <= LOOKS[-1] + 1
            if evaluating or self._misses_something():
                return False
        return not lingering.holding

    def _misses_something(self) -> bool:
        """Whether places of interest, or the evaluation that is to be expected, have not run as far as they are needed."""
        # Ranks must stop at the same step, and what only one of them waits for would not let them.
        unseen = self.options.evaluates and not self._evaluated and self._world_size == 1
        return unseen or self._lines.missing(self.options.awaited)

    def _finish(self, look: bool = True) -> None:
        if look and self._stepper.in_phase:
            self._look(self._series["eval"], 2)
        self._take_back()
        steps = max(series.sampled for series in self._series.values())
        said = End("stopped", f"stopped after {steps} sampled steps")
        if self.asked_for_cuda_in_vain:
            said = End("no-device", "--device cuda was asked for, and the script never used the GPU")
        self.report(said)
        self._rest()
        self._raise_stop()

    def _take_back(self) -> None:
        """Leaks of the sampled steps that the same loop has let go of since are none."""
        held = self._lingering.held if self._lingering is not None else 0
        for series in (self._series["train"], self._series["explicit"]) if held else ():
            before = series.window
            if before is not None:
                self._look(series, 2)
                if series.window is not None:
                    series.window = released(before, series.window, held)

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
    def asked_for_cuda_in_vain(self) -> bool:
        """Whether the GPU shall be measured, and the script has nothing on it."""
        return self.options.device == "cuda" and self.probe is not None and not self.probe.used()

    @property
    def sampled(self) -> int:
        """The steps sampled of the kind of which there are most."""
        return max(series.sampled for series in self._series.values())

    def look_at_end(self, frames: tuple[FrameType, ...], anew: bool = True) -> None:
        """A last look while a traceback, or a main thread that hangs, still holds the script's frames. Not
        `anew`: only where nothing was judged yet."""
        for series in self._series.values():
            established = series.kind != "eval" and self._lingering is not None
            if established or (series.window is not None and not anew):
                continue
            if (
                series.warm
                and len(series.boundaries) > 3
                and (series.kind != "eval" or self._stepper.in_phase)
            ):
                with contextlib.suppress(Exception):
                    self._look(series, 2, frames)

    def excused(self, what: str) -> End | None:
        """How the run ended where the script failed after its epochs were cut short: what was sampled before stands, and
        the script is not to blame. `what` says how it failed."""
        if not self._cut:
            return None
        self._notes.append(
            f"{what[0].upper()}{what[1:]}, after gpulint had cut its epochs short; what was measured before stands. "
            "Leave out --cut-epochs to let it run as it is."
        )
        return End("stopped", f"stopped after {self.sampled} sampled steps")

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
            *([UNUSED] if self._cuda is not None else []),
            *(self.probe.notes() if self.probe is not None else []),
        ]
        return RankResult(
            rank=self._rank,
            world_size=self._world_size,
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

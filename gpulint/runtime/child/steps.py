"""The script's steps as they come: marks, warm-up, windows, and the evaluation loops between."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpulint.runtime.child.looks import LOOKS, Looks
from gpulint.runtime.child.session import TRAINING, Session
from gpulint.runtime.observing.calls import collect
from gpulint.runtime.observing.hostmemory import HostMemory
from gpulint.runtime.probes.hooks import parameters_of
from gpulint.runtime.record.result import Progress, Sample, StepKind
from gpulint.runtime.record.series import Mark, Series, sample_of

MOST_WARMUP = 10
EARLY = (1, 2, 3, 6)  # sampled steps whose readings the looks need, to tell enough stretches apart
MOST_READINGS = 50  # in one evaluation loop, for loops too short to be judged
MOST_ANEW = 8  # times that training is sampled anew
ENOUGH_LOOPS = 3  # samplings of an evaluation loop after which it is left alone, once training is sampled


class Steps:
    """Takes marks and turns the stretches between them into samples. `unwatched` says that what comes now would tell
    nothing new; `evaluated` that an evaluation was sampled since training is, `evaluation` is that under way which is sampled."""

    def __init__(self, session: Session, looks: Looks, device: DeviceChoice) -> None:
        self.unwatched = False
        self.evaluated = False
        self._session = session
        self._looks = looks
        self._device = device
        self._begin = session.clock()
        self._marked: int | None = None  # the mark of the present event, where one was taken
        self._memory = HostMemory()
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self._places: set[int] = set()  # where optimizers stepped while steps were sampled, as numbers
        self._is_elsewhere = False  # whether one has stepped in another place since
        self._anew = 0  # times that training was sampled anew
        self._caller = 0  # who called the outermost module last, as a number
        self.evaluation: Any = None  # the evaluation loop under way, once it is known to be one
        self._loops: Counter[Any] = Counter()  # how often each evaluation loop was sampled, by who called it
        self._readings: Counter[Any] = Counter()  # evaluation loop -> marks taken in it

    # -- marks -----------------------------------------------------------------------------------------------

    def event(self) -> None:
        """Something happens: the next mark is another one."""
        self._marked = None

    def mark(self) -> int:
        """Read everything, unless what comes now would tell nothing new; the number of the reading."""
        session = self._session
        if self.unwatched and session.marks and self._marked is None:
            session.peaking.pass_over()
            return len(session.marks) - 1
        return self._read(self._wants_reading)

    def mark_window(self) -> int:
        """Read everything where a window begins or ends."""
        number = self._read(lambda: True)
        self._session.probe.attribute(number)  # the mark may be a step's, which needed no births
        return number

    def _read(self, wanted: Callable[[], bool]) -> int:
        session = self._session
        if self._marked is not None:
            return self._marked
        self._device.check()
        session.peaking.turn()
        parts = session.peaking.parted()
        number = self._marked = session.lines.mark = len(session.marks)
        figures = session.probe.mark(wanted())
        session.peaking.account(figures)
        heap = self._memory.heap(session.probe.raw_bytes())
        figures = replace(figures, rss=self._memory.rss(), heap=heap)
        sequence = 0 if session.torch is None else session.torch._C._autograd._get_sequence_nr()
        now = session.clock() - self._begin
        session.marks.append(Mark(now, figures, sequence, parts))
        return number

    def _wants_reading(self) -> bool:
        """Whether attribution needs the mark that is being taken: in warm-up (the last one is the baseline),
        at a few points of the window, and some steps before each look, because what is younger than that is
        not judged."""
        session = self._session
        if session.stepper.in_phase:
            phase = session.stepper.phase
            self._readings[phase] += 1
            return self._looks.is_to_be_judged(phase) and self._readings[phase] < MOST_READINGS
        series = session.series["explicit" if session.series["explicit"].count else "train"]
        if not series.warm:
            return series.count - series.begun >= session.fewest_warmup - 1
        wanted, following = session.options.steps, len(series.boundaries)
        return following in {*EARLY, wanted // 3, 2 * wanted // 3, wanted - 2, *(look - 2 for look in LOOKS)}

    # -- steps -----------------------------------------------------------------------------------------------

    def confirm(self, kind: StepKind, previous: int, mark: int) -> None:
        """The stretch between two marks was a step of this kind."""
        self._session.ended.append(mark)
        session = self._session
        lingering, series = session.lingering, session.series[kind]
        if lingering is not None and kind in session.main_kinds and lingering.step(session.allocated() or 0):
            self._looks.take_back()
        if lingering is not None and kind != "eval":
            if self._is_elsewhere and not self._looks.suspects and self._sample_anew(series):
                series.begin_anew()
        elif not self.unwatched:
            self._record(series, previous, mark)

    def _sample_anew(self, series: Series) -> bool:
        """The run goes on in another place: that is sampled too. Ranks and trials, which end after the same step, are left at that."""
        session = self._session
        if self._anew >= MOST_ANEW or session.world_size > 1 or session.options.trial is not None:
            return False
        self._anew += 1
        session.goal, session.lingering = series.sampled + session.options.steps, None
        return True

    def _record(self, series: Series, previous: int, mark: int) -> None:
        session = self._session
        series.count += 1
        if session.options.warmup == 0 and not series.warm and previous >= 0:
            self._sample_from(series, previous)
        elif series.kind == "eval" and (not series.boundaries or series.boundaries[-1] != previous):
            self._begin_phase(series, previous)
        sampled = series.warm and bool(series.boundaries)
        sample = sample_of(session.marks, series, previous, mark, sampled)
        series.samples.append(sample)
        if series.warm:
            series.boundaries.append(mark)
            series.sampled += sampled
        elif self._is_warm(series):
            series.warmup = series.count - series.begun
            self._sample_from(series, mark)
        elif session.measures and series.count - series.begun >= session.fewest_warmup - 1:
            session.probe.watch(True)  # warm-up is found to be over one step late
            session.peaking.settle()
        self._tell(series, sample)
        self._looks.look_if_due(series)

    def _sample_from(self, series: Series, mark: int) -> None:
        """Warm-up is over: the steps from this mark on are sampled."""
        session = self._session
        series.warm, series.boundaries = True, [mark]
        if series.kind != "eval":
            session.lines.forget()
            session.peaking.begin_sampling()
        session.watch_more(True)
        if session.measures:
            collect(1)

    def _is_warm(self, series: Series) -> bool:
        warmed, wanted = series.count - series.begun, self._session.options.warmup
        if wanted is not None:
            return warmed >= wanted
        if series.kind == "eval":
            return series.count >= 1
        sizes = series.state_sizes
        sizes.append(self._optimizer_bytes())
        if warmed < self._session.fewest_warmup:
            return False
        return warmed >= MOST_WARMUP or (len(sizes) >= 2 and sizes[-1] == sizes[-2])

    def _optimizer_bytes(self) -> int:
        optimizers = (reference() for reference in self._optimizers.values())
        states = [one for known in optimizers if known is not None for one in list(known.state.values())]
        values = (value for one in states if isinstance(one, dict) for value in one.values())
        return sum(self._session.tensor_bytes(value) or 0 for value in values)

    def _tell(self, series: Series, sample: Sample) -> None:
        drifted = None
        if sample.sampled and sample.allocated is not None:
            base = next((s.allocated for s in reversed(series.samples) if not s.sampled), None)
            drifted = None if base is None else sample.allocated - base
        wanted = self._session.options.steps + series.warmup
        progress = Progress(self._session.rank, sample, wanted, drifted)
        self._session.send({"progress": progress.to_json()})

    # -- which training, which evaluation --------------------------------------------------------------------

    def optimizer_stepped(self, optimizer: Any, place: int) -> None:
        """Its state is part of what must settle before steps are sampled. `place` is a number for the lines that led to it."""
        self._optimizers[id(optimizer)] = weakref.ref(optimizer)
        self._is_elsewhere = self._session.lingering is not None and place not in self._places
        self._places |= {place} if not self._is_elsewhere else set()

    def begin_other_training(self, optimizer: Any) -> None:
        """A loop with an optimizer for parameters that were never stepped is another training: it warms up
        anew, and what its steps leave behind is not measured against the steps of the one before."""
        series = self._session.series["train"]
        known = {id(p) for one in self._optimizers.values() for p in parameters_of(one())}
        if len(series.boundaries) <= LOOKS[-1] or any(id(p) in known for p in parameters_of(optimizer)):
            return
        series.begin_anew()

    def forward_comes(self, trains: bool, module: int, caller: int) -> None:
        """An outermost module is about to run, called from a place with this number."""
        self._caller = caller
        self.unwatched = self._is_known(trains, ("forward", (module, caller)))

    def _is_known(self, trains: bool, loop: Any) -> bool:
        """Whether a step of this kind would tell nothing new: training once enough of it is sampled, an evaluation loop
        once enough of its steps are, or once it was sampled often enough."""
        session = self._session
        if session.endless:
            return False
        if session.lingering is not None and (trains or self._loops[self._caller] >= ENOUGH_LOOPS):
            return True
        often = 1 if session.stepper.has_optimizer else 10
        long = len(session.series["eval"].boundaries) > often * session.options.steps + 1
        return long and not trains and session.stepper.phase == loop

    def _begin_phase(self, series: Series, mark: int) -> None:
        """An evaluation loop begins: its first step is warm-up, whatever came before."""
        session = self._session
        series.archive()
        self._loops[self._caller] += 1
        if not session.stepper.has_optimizer and session.lingering and self._loops[self._caller] == 1:
            self._sample_anew(series)
        series.boundaries = [] if series.warm and session.options.warmup != 0 else [mark]
        self.evaluation = session.stepper.phase
        session.watch_more(session.lingering is not None or series.warm)

    def check_evaluation(self) -> None:
        """After an event: what ran in an evaluation loop that is over now was sampled as far as it goes."""
        session = self._session
        if self.evaluation is None or session.stepper.phase == self.evaluation:
            return
        self.evaluation = None
        trained = any(session.series[kind].warm for kind in TRAINING)
        if trained or not session.stepper.has_optimizer:
            self.evaluated = True
            session.lines.settle()
        else:
            session.lines.forget()
        session.watch_more(session.lingering is None and (trained or not session.stepper.has_optimizer))


class DeviceChoice:
    """Made before each mark, until the script uses the GPU. `idle` is the GPU's probe as long as the host's stands in
    for it."""

    def __init__(self, session: Session) -> None:
        self.idle: Any = None
        self._session = session

    def check(self) -> None:
        """On a machine with a GPU that the script leaves alone, what it keeps is on the host."""
        session = self._session
        probe = session.probe
        if session.on_gpu and session.options.device == "auto" and not probe.used():
            from gpulint.runtime.probes.host import HostProbe

            probe.on_first_use = self._use_cuda
            self.idle = probe
            host = HostProbe(session.frames)
            if probe.crests is not None:
                host.follow_peaks()
            host.start()
            host.adopt(parameters_on_device=True)
            self._switch(host)

    def _use_cuda(self) -> None:
        """The script has begun to use CUDA after all."""
        if self.idle is not None and not self._session.done:
            self._session.probe.stop()
            self._switch(self.idle)
            self.idle = None

    def _switch(self, probe: Any) -> None:
        """Measure with another probe from here on. Every series begins anew: their figures do not compare."""
        session = self._session
        probe.skip_to(len(session.marks))
        session.probe = session.lines.probe = probe
        session.forwards.allocated = probe.allocated
        for series in session.series.values():
            series.begin_anew()

"""What one watched run consists of, shared by those who count its steps, judge them, end it and write it down."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import sys
import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from gpulint.runtime.observing.calls import Calls, Collector
from gpulint.runtime.observing.hostmemory import Relatives
from gpulint.runtime.observing.lines import LineCounter, NamedCalls, Ticks, Told
from gpulint.runtime.observing.stepping import Stepper
from gpulint.runtime.probes.base import Block, Probe
from gpulint.runtime.probes.frames import Activation, Frames
from gpulint.runtime.record import drift
from gpulint.runtime.record.besides import FEWEST_STOPPED, Besides, Cycle, Later, Recording
from gpulint.runtime.record.channel import Send
from gpulint.runtime.record.options import Options
from gpulint.runtime.record.peaks import CardUse
from gpulint.runtime.record.result import ENDED_WELL, End, Environment, RankResult, StepKind
from gpulint.runtime.record.series import Mark, Series, Span, united

KINDS: tuple[StepKind, ...] = ("train", "eval", "explicit")
TRAINING: tuple[StepKind, ...] = ("train", "explicit")
FEWEST_WARMUP = 3


class Session:
    """The options of a run, its instruments, and what they have seen so far. `send` takes one message for the parent;
    `endless` never stops the script, and `called` is told of
    calls of functions that the user has named. `torch`, `forwards` and a `probe` that knows something are there once the script has
    imported torch."""

    stepper: Stepper

    def __init__(self, options: Options, send: Send, endless: bool, called: Told) -> None:
        self.options = options
        self.goal = options.steps  # steps of training that are to be sampled, all loops of it together
        self.send = send
        self.endless = endless
        self.frames = Frames(options.home)
        self.calls = Calls(self.frames, self.reserved, self.allocated)
        named = NamedCalls(options.named, called)
        self.lines = LineCounter(options.lines, self.tensor_bytes, options.trial is None, named)
        self.ticks = Ticks()
        self.relatives = Relatives()
        self.collector = Collector(lambda: self.calls.sampling and not self.looking, self.allocated)
        self.torch: Any = None
        self.probe: Any = Probe()
        self.forwards: Any = None
        self.recorder: Any = None  # in a trial
        self.marks: list[Mark] = []
        self.series: dict[StepKind, Series] = {kind: Series(kind) for kind in KINDS}
        self.ended: list[int] = []  # the marks at which steps have ended, of whatever kind
        self.spans: dict[Hashable, Span] = {}  # windows, by what tells one kind from others
        self.attributing = True  # births are of interest between sampled steps too
        self.peaking: Any = None  # a `peaking.Peaking`, which is given a session, from the beginning
        self.touching: Any = None  # a `touching.Touching`, likewise
        self.lingering: Lingering | None = None  # set once enough steps are sampled
        self.notes: list[str] = []
        self.cycles: list[Cycle] = []  # that the collector was found to have to free
        self.freed: list[Block] = []  # with them, by our own looks: later ones find them no more
        self.unjudged: list[str] = []  # why looks failed
        self.done = False  # the result is sent, or this is a forked process
        self.looking = False  # what happens now is our own doing
        self.looked = 0.0  # seconds spent in looks, which are not the script's
        self.process: tuple[int, ...] = ()  # of a worker, as in `RankResult`
        self.is_fork = False  # with all that its parent had
        self.seed = 0  # in a trial
        self._rank = int(os.environ.get("RANK", "0"))

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """What happens within is our own doing, and its time is not the script's."""
        begin, within, self.looking = time.perf_counter(), self.looking, True
        try:
            yield
        finally:
            self.looking = within
            self.looked += 0.0 if within else time.perf_counter() - begin

    def clock(self) -> float:
        """Seconds that the script has had for itself."""
        return time.perf_counter() - self.looked

    def note(self, text: str) -> None:
        """Something for the reader of the figures, told once."""
        if text not in self.notes:
            self.notes.append(text)

    @property
    def rank(self) -> int:
        """The number of this process under torchrun, or among the workers that its process has made."""
        return self.process[-1] - 1 if self.process else self._rank

    @property
    def world_size(self) -> int:
        """How many processes train together, as far as this one knows: torchrun says it, or else the script's process group."""
        said = os.environ.get("WORLD_SIZE")
        distributed = sys.modules.get("torch.distributed")
        if said is None and distributed is not None and distributed.is_available():
            return int(distributed.get_world_size()) if distributed.is_initialized() else 1
        return int(said or 1)

    @property
    def fewest_warmup(self) -> int:
        """The steps that warm-up takes at least."""
        return FEWEST_WARMUP if self.options.warmup is None else self.options.warmup

    @property
    def main_kinds(self) -> Sequence[StepKind]:
        """The kinds of steps that the run is about."""
        return TRAINING if self.stepper.has_optimizer else KINDS

    @property
    def counts(self) -> dict[StepKind, int]:
        """Steps of each kind so far, warm-up included."""
        return {kind: series.count for kind, series in self.series.items()}

    @property
    def steps(self) -> int:
        """Steps of any kind so far."""
        return sum(self.counts.values())

    @property
    def sampled(self) -> int:
        """The steps sampled of the kind of which there are most."""
        return max(series.sampled for series in self.series.values())

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU's memory is measured."""
        return bool(self.probe.name == "cuda-allocator")

    @property
    def measures(self) -> bool:
        """Whether there is memory to be measured: the script has imported torch."""
        return bool(self.probe.name != "none")

    @property
    def asked_for_cuda_in_vain(self) -> bool:
        """Whether the GPU shall be measured, and the script has nothing on it."""
        return self.options.device == "cuda" and self.measures and not self.probe.used()

    @property
    def sees_births(self) -> bool:
        """Whether what is born now will be known by its line."""
        return self.attributing or self.calls.sampling or not self.on_gpu

    def watch_more(self, sampling: bool) -> None:
        """Watch closely while steps are sampled; between, watch for what is to come alone."""
        self.lines.sampling = self.calls.sampling = sampling
        if self.forwards is not None:
            self.forwards.resting = self.lingering is not None and not sampling
        self.probe.watch(sampling or self.attributing)

    def tensor_bytes(self, value: Any) -> int | None:
        """The size of a tensor's storage; None for anything else."""
        if self.torch is None or not issubclass(type(value), self.torch.Tensor):
            return None
        with contextlib.suppress(NotImplementedError, RuntimeError), self.torch._C.DisableTorchFunction():
            return int(self.torch.Tensor.untyped_storage(value).nbytes())
        return None

    def reserved(self) -> int | None:
        """What torch's allocator has taken from the driver, where a GPU is measured."""
        return int(self.torch.cuda.memory_reserved()) if self.on_gpu else None

    def allocated(self) -> int | None:
        """What is on the GPU, or would be, as the probe reads it; None before there is one."""
        allocated: int | None = self.probe.allocated()
        return allocated


# -- the result ----------------------------------------------------------------------------------------------


def assemble(session: Session, end: End, notes: Iterable[str]) -> RankResult:
    """The result as it stands. `notes` are said besides those of the session and of its probe."""
    every = list(session.series.values())
    drifts, holders = united(every, session.spans.values())
    first_use = session.probe.first_use
    sampled = {series.kind: [s for s in series.samples if s.sampled] for series in every}
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
        trends=tuple(one for kind, samples in sampled.items() for one in drift.trends(kind, samples)),
        lines=tuple(session.lines.figures()),
        calls=tuple(session.calls.figures()),
        forwards=tuple(session.forwards.figures() if session.forwards is not None else ()),
        notes=(*session.notes, *notes, *session.probe.notes()),
        recording=_recording(session, end),
        process=session.process,
        peaks=session.peaking.result(end.reason in ENDED_WELL),
        cards=_cards(session),
        first_use=session.frames.sites[first_use] if first_use else None,
        pid=os.getpid(),
        besides=Besides(
            watched=dict(session.touching.watched),
            doubt=session.touching.doubt,
            untouched=session.touching.untouched,
            cycles=_largest(session.cycles),
            collections=session.collector.figures(),
            processes=session.relatives.figures(),
            later=session.lingering.later() if session.lingering is not None else Later(),
        ),
        windows=tuple(span.figures() for span in session.spans.values() if span.ends or span.is_open),
        unjudged=tuple(dict.fromkeys(session.unjudged)),
    )


def _largest(cycles: list[Cycle]) -> tuple[Cycle, ...]:
    """Each kind of cycle once, as the look saw it that found most."""
    found = {(*one.chain, one.cut): one for one in sorted(cycles, key=lambda cycle: cycle.bytes)}
    return tuple(sorted(found.values(), key=lambda cycle: -cycle.bytes))


def _cards(session: Session) -> tuple[CardUse, ...]:
    if session.on_gpu:
        from gpulint.runtime.observing import machine

        with contextlib.suppress(Exception):
            return machine.cards()
    return ()


def _recording(session: Session, end: End) -> Recording | None:
    """What a trial compares. Nothing where the main thread may be at it still."""
    if session.recorder is None or end.reason in ("timeout", "interrupted"):
        return None
    with session.aside():
        recording: Recording = session.recorder.recording()
        return recording


def _environment(session: Session) -> Environment:
    told: dict[str, Any] = {}
    if session.measures:
        from gpulint.runtime.observing import machine

        told = machine.environment(session.probe.name)
    return Environment(
        python=platform.python_version(),
        executable=sys.executable,
        platform=platform.platform(),
        date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        **told,
    )


# -- after the sampled steps ---------------------------------------------------------------------------------

HOLD_STEPS = 2000  # steps in which a leak has the chance to be let go of
HOLD_SECONDS = 10.0
FEWEST_DUE = 8  # of those steps, after which it is looked at what was let go of; then after half as many again, and so on
DUE_AGAIN = 1.5
ROOM = 0.5  # of the memory that is free, which a leak may fill meanwhile
# Of the reach, in which growth may begin and loops around the steps may come round; more where sampling took long
PATROL_SHARE = 1 / 6
PATROL_TIMES = 6.0  # what sampling took: where it took most of one round, three more end in that
STOPPED_SHARE = 0.25  # of the steps that were seen, the last: whether growth has stopped


class Lingering:
    """The time after the sampled steps, in which the script goes on without being watched: places of interest that have not run yet may be
    reached, what looks like a leak may turn out to be let go of, and for the seconds of `patrol` growth may begin and loops may come round. `reach`
    are the seconds it may take by this `clock`, `sampling` those that the steps took; `awaiting` is set where places of interest have not run yet."""

    def __init__(self, reach: float, sampling: float, clock: Callable[[], float]) -> None:
        self.awaiting = False
        self._clock = clock
        self.patrol = min(reach, max(PATROL_SHARE * reach, PATROL_TIMES * sampling))
        self._begin = clock()
        self.reach = reach
        self._levels: list[int] = []  # what was allocated after each step
        self._most = 0
        self._held = 0  # steps of the loop that was sampled
        self._due = FEWEST_DUE
        self._calls: list[weakref.ref[Activation]] = []

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return self._clock() - self._begin

    def hold(self, calls: list[weakref.ref[Activation]], per_step: float, free: int | None) -> None:
        """From now on see whether what leaks `per_step` bytes is let go of, while each of the `calls` goes on. `free` are the bytes that
        are left for it."""
        room = HOLD_STEPS if free is None or per_step <= 0 else int(ROOM * free / per_step)
        self._most = min(HOLD_STEPS, room)
        self._calls, self._levels, self._held, self._due = calls, [], 0, FEWEST_DUE

    def step(self, level: int) -> bool:
        """A step has passed unwatched. Returns whether it is time to see what leaked was let go of: the script may end before all these
        steps, and a look takes as long as many a step."""
        self._levels.append(level)
        if not self.holding:
            return False
        self._held = len(self._levels)
        due = self._held >= self._due or self._held == self._most - 1
        if due:
            self._due = int(DUE_AGAIN * self._due)
        return due

    def loop_is_over(self) -> None:
        """The loop in which steps were sampled has ended: what is let go of now was kept as long as it ran."""
        self._most = 0

    @property
    def holding(self) -> bool:
        """Whether it is still open if what leaked is let go of."""
        return len(self._levels) < self._most and self.seconds < HOLD_SECONDS and self._is_running

    @property
    def fell(self) -> int:
        """By how much what is allocated has fallen."""
        return self._levels[0] - self._levels[-1]

    @property
    def held(self) -> int:
        """In how many further steps of the same loop it could have been let go of; 0 where that cannot be said."""
        return self._held if self._is_running else 0

    @property
    def _is_running(self) -> bool:
        """Whether that loop goes on."""
        if any(call() is None for call in self._calls):
            self._most = 0
        return self._most > 0

    def later(self, same: bool = False) -> Later:
        """How `allocated` grew in the last part of the steps, or of those of the `same` loop."""
        levels = self._levels[: self._held] if same else self._levels
        steps = min(max(FEWEST_STOPPED, int(STOPPED_SHARE * len(levels))), len(levels) - 1)
        return Later(steps, levels[-1] - levels[-1 - steps]) if steps > 0 else Later()

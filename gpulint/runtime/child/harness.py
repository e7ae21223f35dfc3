"""The child side: watches the script from within. The script's events come in here; `steps` makes steps of them, `looks`
judges them, `stopping` ends the script, `session` writes down what was seen."""

from __future__ import annotations

import os
import random
import sys
import threading
import weakref
from collections import Counter
from contextlib import ExitStack
from types import FrameType, ModuleType
from typing import Any

from gpulint import marks
from gpulint.runtime.child.looks import Looks
from gpulint.runtime.child.peaking import Peaking
from gpulint.runtime.child.running import seed, when_imported
from gpulint.runtime.child.session import Session, assemble
from gpulint.runtime.child.steps import DeviceChoice, Steps
from gpulint.runtime.child.stopping import Stop, Stopping
from gpulint.runtime.child.touching import Touching
from gpulint.runtime.child.windows import Windows
from gpulint.runtime.observing.stepping import Numbers, Stepper
from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.plain import has_parameters
from gpulint.runtime.record.channel import Send
from gpulint.runtime.record.options import Named, Options
from gpulint.runtime.record.result import End, RankResult, Site, StepKind

__all__ = ["Harness", "Stop"]

CUT = "Epochs were cut short (--cut-epochs), to reach lines that had not run when enough steps were sampled."
THREAD = "Networks run on the thread `{}`: its steps were sampled, and what other threads of the script's do is seen in part."
ALONE = 8  # events of another thread, without one of that which is followed
MOST_CLOSURES = 30  # backwards in one optimizer's step, from which on they are the steps; LBFGS asks for 25 at most by default
UNUSED = "The script does not use the GPU of this machine: what it keeps was measured on the host instead."


def _nobody(message: dict[str, Any]) -> None:
    """Listens."""


def _loader(iterator: Any) -> tuple[str, int]:
    """What tells the passes over one DataLoader's data from others."""
    return "pass", id(getattr(iterator, "_dataset", iterator))


class Harness:
    """Everything that happens in the child. `send` takes one message for the parent, see also `connect`; `endless` never
    stops the script."""

    def __init__(self, options: Options, send: Send = _nobody, endless: bool = False) -> None:
        self.session = Session(options, send, endless, self._called)
        self._device = DeviceChoice(self.session)
        self.looks = Looks(self.session)
        self._steps = Steps(self.session, self.looks, self._device)
        self._touching = self.session.touching = Touching(self.session)
        self.session.peaking = Peaking(self.session, options.peaks)
        self._windows = Windows(self.session, self.looks, self._steps.mark_window, self._promoted)
        self._stopping = Stopping(self.session, self.looks, self._steps, self._windows, self._close)
        self._stepper = self.session.stepper = Stepper(self._steps.mark, self._confirm)
        if any(named.kind == "step" for named in options.named):
            self._stepper.boundary = "explicit"
        self._optimizing = False  # whether the script has an optimizer of torch's
        self._iterator: Any = None  # the DataLoader iterator that gave the last batch
        # DataLoader iterator -> optimizer steps since its present pass began
        self._passes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._cut = False
        # Places of forwards in train mode since anything went backward
        self._forwarded: set[tuple[int, str]] = set()
        self._numbers = Numbers()
        self._went_backward = False
        self._closures: int | None = None  # backwards within the optimizer's step that is under way
        # The script's main thread, and the one whose events count
        self._own = self._followed = threading.get_ident()
        self._others: Counter[int] = Counter()  # events of other threads since its last
        self._undo = ExitStack()

    # -- start and stop --------------------------------------------------------------------------------------

    def start(self, worker: int = 0) -> None:
        """Arm everything that needs no torch; the rest follows when the script imports it. Of a spawned `worker` the number, so
        that it draws other random numbers than the next; a forked one goes on with those of its parent."""
        trial = self.session.options.trial
        if trial is not None:
            self.session.seed = trial.seed + self.session.rank + worker
            if self.session.is_fork:
                # Python's own generator alone is seeded anew by a fork, from the clock
                random.seed(self.session.seed)
            else:
                seed(self.session.seed)
        if when_imported("torch", self._torch_imported):
            self.session.probe.adopt()
        os.register_at_fork(after_in_child=self._forked)
        self.session.calls.watch_collector()
        self.session.collector.start()
        self.session.lines.start()
        marks._listener, marks._windows = self.step, self.window

    def again(self) -> Harness:
        """Another one, for a forked worker in which this one has become silent: it knows the code that is compiled already."""
        self.stop_watching()
        other = Harness(self.session.options)
        other.session.is_fork = True
        other.session.lines.adopt(self.session.lines)
        return other

    def retire(self) -> None:
        """Watch nothing in this process, which is no worker of the script's."""
        self._forked()
        self.stop_watching()
        self.session.probe.leave()

    def _forked(self) -> None:
        """In a forked process (a DataLoader worker, say): be gone."""
        session = self.session
        session.done = True
        marks._listener = marks._windows = None
        session.probe.active = False
        session.lines.active = False
        session.collector.stop()
        if session.recorder is not None:
            session.recorder.stop()
        if session.forwards is not None:
            session.forwards.active = False
        session.send = _nobody

    def _torch_imported(self, torch: ModuleType) -> None:
        if self.session.done:
            return
        try:
            self._watch_torch(torch)
        except Exception as error:
            self.session.note(f"torch could not be watched: {type(error).__name__}: {error}")

    def _watch_torch(self, torch: Any) -> None:
        from gpulint.runtime.observing import machine
        from gpulint.runtime.observing.forwards import Forwards

        session = self.session
        self.looks.prepare()
        session.torch = torch
        session.frames.foreign = (os.path.dirname(os.path.abspath(torch.__file__)) + os.sep,)
        if session.options.device == "cuda" and not machine.has_cuda():
            self.report(End("no-device", machine.why_no_cuda(session.options.limited)))
            self._stopping.raise_stop()
        session.probe = machine.make_probe(session.options.device, session.frames)
        if session.options.peaks:
            session.probe.follow_peaks()
        if session.options.snapshot:
            session.probe.keep_history()
        begins, ended = session.peaking.backward_begins, session.peaking.backward_ended
        undo = hooks.together(
            hooks.optimizers(self._optimizer_made, self._optimizer_steps, self._optimizer_stepped),
            hooks.skipped_steps(self._optimizer_stepped),
            hooks.loaders(self._batch, self._pass_ended, lambda change: session.probe.load(change)),
            hooks.replays(self._replayed),
            hooks.threads(lambda: session.probe.join()),
            hooks.around(torch.autograd, "backward", begins, self._backward, ended),
            hooks.around(torch.autograd, "grad", after=self._differentiated),
        )
        self._undo.callback(undo)
        if session.options.trial is not None:
            from gpulint.runtime.trying.recorder import Recorder

            if not session.is_fork:
                torch.manual_seed(session.seed)
            session.recorder = Recorder()
            session.recorder.start()
            self._undo.callback(session.recorder.stop)
        session.forwards = Forwards(session.frames, self._forward, session.probe.allocated)
        session.forwards.start()
        session.probe.start()
        session.probe.watch(session.attributing)
        session.calls.watch_torch(torch)
        session.lines.probe = session.probe
        session.lines.is_compiling = torch.compiler.is_compiling

    def _close(self, end: End) -> None:
        self.report(end)
        self._rest()

    def _rest(self) -> None:
        """Measure no more. The hooks that see steps stay, to stop the script again if it swallows the
        stop."""
        session = self.session
        counting = session.lines, session.ticks, session.calls, session.collector
        for one in (self._touching, *counting, session.probe):
            one.stop()

    def stop_watching(self) -> None:
        """Take every hook out, so that the interpreter can end in peace."""
        self._rest()
        marks._listener = marks._windows = None
        if self.session.forwards is not None:
            self.session.forwards.stop()
        self._undo.close()

    # -- events of the script --------------------------------------------------------------------------------

    def _here(self) -> bool:
        """Whether an event counts: on the thread that is followed, and not from our own doing. Also stops a
        script that has swallowed the stop."""
        thread = threading.get_ident()
        if self.session.looking or (thread != self._followed and not self._changes_to(thread)):
            return False
        if self.session.done:
            self._stopping.raise_again()
            return False
        self._others.clear()
        return True

    def _changes_to(self, thread: int) -> bool:
        """Whether another thread is followed from now on: where it alone runs networks, before any step was sampled."""
        self._others[thread] += 1
        session = self.session
        if self._others[thread] <= ALONE or session.sampled or session.done or not session.measures:
            return False
        self._followed = thread
        session.probe.join()
        self._windows.change_thread()
        self._steps.event()
        if thread != self._own:
            session.note(THREAD.format(threading.current_thread().name))
        return True

    def _confirm(self, kind: StepKind, previous: int, mark: int) -> None:
        if not self.session.done:
            self._steps.confirm(kind, previous, mark)
            if self.session.lingering is not None and not self._windows.are_named:
                self._windows.stepped()
            self._touching.step(kind)
            with self.session.aside():
                self.session.relatives.step(self.session.steps)
            self._stopping.stop_if_enough(kind)

    def _trains(self) -> None:
        """A step of training comes: after the sampled ones it is not watched."""
        self._steps.unwatched = self.session.lingering is not None
        if self.session.recorder is not None:
            self.session.recorder.update()

    def _comes(self, module: Any = None) -> None:
        """A forward, or a batch, comes."""
        if self.session.recorder is not None:
            self.session.recorder.event(module)

    def step(self) -> None:
        """`gpulint.step()` was called."""
        if self._here():
            self._steps.event()
            self._explicit()

    def _explicit(self) -> None:
        self._trains()
        self._stepper.explicit()
        self._stopping.stop_if_reached()

    def window(self, name: str, begins: bool, site: Site | None = None) -> None:
        """A window that the user has named begins, or ends."""
        if self._here():
            self._steps.event()
            if begins:
                self._windows.begin_named(name, site or self.session.frames.here(3))
            else:
                self._windows.end(name)

    def _called(self, named: Named, begins: bool) -> None:
        """A function that the user has named as a step or a unit is called, or has returned."""
        if named.kind == "unit":
            site = Site(named.file, named.line, named.function)
            self.window(f"call of `{named.function}()`", begins, site)
        elif not begins:
            self.step()

    def _promoted(self, function: str) -> None:
        why = "no optimizer stepped, and no module ran twice in it"
        self.session.note(f"A call of `{function}()` is a step here: {why}.")

    def _happens(self, frame: FrameType) -> None:
        """An event of the script's, which comes from this frame."""
        self._steps.event()
        if self._windows.arrive(frame):
            self._explicit()

    def _happened(self, frame: FrameType) -> None:
        """What an event has come to."""
        self._windows.follow(frame)
        self._steps.check_evaluation()
        self._stopping.stop_if_reached()

    def _forward(self, module: Any) -> None:
        if self._here():
            training = bool(module.training)
            if training and not has_parameters(module):
                return  # a criterion: it is in train mode in evaluations too
            frame = sys._getframe(1)
            self._happens(frame)
            self._comes(module)
            self._touching.forward(module)
            trains = training and self._stepper.has_optimizer and self._may_train(module, frame)
            # Loops that evaluate the same model one after the other are told apart by who called it.
            where = 0 if trains else self.session.frames.stack(frame)
            number = self._numbers.of(module, where)
            self._steps.forward_comes(trains, number, where)
            self._stepper.forward((number, where), trains)
            self._happened(frame)

    def _may_train(self, module: Any, frame: FrameType) -> bool:
        """Whether a forward in train mode can be training's. Without grad it is not; nor is it where it runs for the second time since
        anything went backward, once there was training, and no backward ever went through what it makes."""
        torch, session = self.session.torch, self.session
        if not torch.is_grad_enabled():
            return False
        place = (self.session.frames.index(frame), type(module).__name__)
        again, self._forwarded = place in self._forwarded, {*self._forwarded, place}
        trained = session.series["train"].count > 0 and torch._C._current_graph_task_id() == -1
        return not (again and trained) or session.forwards.is_visited(*place)

    def _batch(self, iterator: Any) -> bool:
        """A DataLoader's iterator is asked for a batch; returns whether it shall say that it has no more."""
        if not self._here():
            return False
        frame = sys._getframe(1)
        self._happens(frame)
        self._iterator = weakref.ref(iterator)
        self.session.relatives.loaded(iterator)
        self._comes()
        self._stopping.stop_if_over()
        if self._may_cut(iterator):
            self._cut = True
            self._pass_ended(iterator)
            return True
        self._stepper.batch(id(iterator))
        if not self._windows.are_named:
            where = self.session.frames.sites[self.session.frames.index(frame)]
            self._windows.begin(_loader(iterator), "pass over a DataLoader", where)
        self._stopping.stop_if_reached()
        return False

    def _may_cut(self, iterator: Any) -> bool:
        """Whether the pass may end here: it has trained, so that no loop is cut to nothing, it is no evaluation's, and
        no other rank would wait for this one."""
        session, lingering = self.session, self.session.lingering
        wanted = session.options.cut_epochs and lingering is not None and lingering.awaiting
        has_trained = self._passes.get(iterator, 0) > 0 and not self._stepper.in_phase
        return wanted and has_trained and session.world_size == 1

    def _pass_ended(self, iterator: Any) -> None:
        """A DataLoader's iterator has given its last batch, or begins anew."""
        if self._here():
            self._steps.event()
            self._windows.end(_loader(iterator))
        if self._passes.pop(iterator, 0) and self.session.lingering is not None:
            self.session.lingering.loop_is_over()

    def _backward(self, *_: Any, **__: Any) -> None:
        """Where a script has no optimizer of torch's, and so updates by hand, its backwards are the steps; so are they within one
        optimizer's step that goes on and on, as LBFGS does with its closure."""
        self._forwarded = set()
        self._went_backward = True
        self._updates()

    def _differentiated(self, *_: Any, **__: Any) -> None:
        """`torch.autograd.grad` was called: as good as a backward where there is none."""
        if not self._went_backward:
            self._updates()

    def _updates(self) -> None:
        if self._closures is not None:
            self._closures += 1
        by_closure = self._closures is not None and self._closures > MOST_CLOSURES
        if (by_closure or not self._optimizing) and self._here():
            frame = sys._getframe(2)
            self._happens(frame)
            self._trains()
            self._stepper.optimizer("backward", 0)
            self.session.peaking.stepped()
            self._happened(frame)

    def _replayed(self, graph: Any) -> None:
        if self._here():
            self._touching.replayed()
            self._happens(sys._getframe(1))
            self._trains()
            self._stepper.replay(id(graph))
            self.session.peaking.stepped()
            self._stopping.stop_if_reached()

    def _optimizer_made(self, optimizer: Any) -> None:
        self._optimizing = True
        self._stepper.optimizer_created()
        self._stopping.trained()
        if threading.get_ident() == self._followed and not self.session.done:
            self._happens(sys._getframe(1))
            self._steps.begin_other_training(optimizer)

    def _optimizer_steps(self, optimizer: Any) -> None:
        """An optimizer begins a step."""
        if threading.get_ident() == self._followed:
            self._closures = 0

    def _optimizer_stepped(self, optimizer: Any) -> None:
        closures, self._closures = self._closures or 0, None
        if threading.get_ident() == self._own != self._followed:
            self._followed = self._own  # it trains after all
            self._windows.change_thread()
        if not self._here() or closures > MOST_CLOSURES:
            return
        frame = sys._getframe(1)
        self._happens(frame)
        self._forwarded = set()
        self._optimizing = True
        self._touching.stepped(optimizer)
        place = self.session.frames.stack(frame)
        self._steps.optimizer_stepped(optimizer, place)
        self._stopping.trained()
        iterator = self._iterator() if self._iterator is not None else None
        if iterator is not None:
            self._passes[iterator] = self._passes.get(iterator, 0) + 1
        parameter = next(iter(hooks.parameters_of(optimizer)), optimizer)
        self._trains()
        if self.session.recorder is not None:
            self.session.recorder.stepped(optimizer)
        self._stepper.optimizer(self._numbers.of(parameter, place), id(optimizer))
        self.session.peaking.stepped()
        self._happened(frame)

    # -- the end ---------------------------------------------------------------------------------------------

    def excused(self, what: str) -> End | None:
        """How the run ended where the script failed after its epochs were cut short: what was sampled before stands, and
        the script is not to blame. `what` says how it failed."""
        if not self._cut:
            return None
        said = f"{what[0].upper()}{what[1:]}, after gpulint had cut its epochs short; what was measured before stands."
        self.session.note(f"{said} Leave out --cut-epochs to let it run as it is.")
        return End("stopped", f"stopped after {self.session.sampled} sampled steps")

    def ended(self) -> None:
        """The script has run to its end: what its variables hold now has outlived all that it did."""
        if not self.session.done:
            self._steps.event()
            self._windows.close()
            self.looks.take_back()

    def report(self, end: End) -> None:
        """Send the result, once."""
        if self.session.done:
            return
        self.session.done = True
        self._write_snapshot()
        self.session.send({"result": self.result(end).to_json()})

    def _write_snapshot(self) -> None:
        """Where one was asked for, and there is a GPU to speak of."""
        session = self.session
        if session.options.snapshot and session.on_gpu:
            from gpulint.runtime.probes.cuda import path_of

            alone = session.world_size == 1 and not session.process
            self.session.note(session.probe.dump(path_of(session.options.snapshot, session.rank, alone)))

    def leave(self, anew: bool = True) -> RankResult:
        """The end of an `endless` one, while what may leak is still held: a last look, and everything measured. Not `anew`: what was judged
        on the way stands, because what leaked may be gone by now, with the function that held it."""
        self.looks.look_at_end((), anew)
        found = self.result(End("finished", f"finished after {self.session.steps} steps"))
        self.stop_watching()
        self.session.probe.leave()
        return found

    def result(self, end: End) -> RankResult:
        """Everything measured so far."""
        notes = [*([CUT] if self._cut else []), *([UNUSED] if self._device.idle is not None else [])]
        return assemble(self.session, end, notes)

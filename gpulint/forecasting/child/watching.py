"""Follows a program on its way: where its steps end, which tensors are weights, gradients and optimizer state, and when
enough was seen."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch

from gpulint import marks
from gpulint.forecasting.child.reaching import Reaching
from gpulint.forecasting.child.tape import Tape
from gpulint.forecasting.recording import Mark, Phase
from gpulint.runtime.observing.stepping import Stepper
from gpulint.runtime.probes import hooks
from gpulint.runtime.record.result import StepKind

ALIKE: Final = 3  # steps in a row that took the same, after which no more is to be learnt from their kind
LONG: Final = 20.0  # seconds after which steps that are alike need not wait for an evaluation
PATIENT: Final = 60.0  # seconds for which what is still to come by the program's text is waited for
MOST_EVALUATED: Final = 20  # batches of an evaluation that goes on growing


class Watch:
    """Sees steps, counts them and calls `enough` when the program may end. `steps` is the most that are trained in one
    epoch, and in all where there are no epochs."""

    def __init__(self, tape: Tape, steps: int, enough: Callable[[], None], reaching: Reaching) -> None:
        self.tape = tape
        self.steps = steps
        self.enough = enough
        self.reaching = reaching
        self.marks: list[Mark] = []
        self.kinds: dict[str, set[int]] = {"parameters": set(), "gradients": set(), "optimizer state": set()}
        self.evaluated = False
        self.cut_epochs = 0
        self.stepper = Stepper(self._take, self._confirm)
        self._taken: list[int] = []
        self._begin = time.monotonic()
        self._depth = 0
        self._trained = 0
        self._alike = 0
        self._last: tuple[int, int] = (-1, -1)
        # Name -> its weights', gradients' and states' numbers
        self.modules: defaultdict[str, set[int]] = defaultdict(set)
        self._names: dict[int, str] = {}  # of modules that are kept
        self._owners: dict[
            int, str
        ] = {}  # of parameters and buffers: the name of the module that they stand in
        self._known: set[int] = set()
        self._kept: list[Any] = []
        self._epochs = 0  # that have ended after they had trained
        self._since_epoch = 0

    def start(self) -> None:
        self._watch_modules()
        self._watch_optimizers()
        self._watch_loaders()
        marks._listener = self.stepper.explicit

    # -- steps -----------------------------------------------------------------------------------------------------

    def _take(self) -> int:
        self._taken.append(len(self.tape.events))
        return len(self._taken) - 1

    def _confirm(self, kind: StepKind, previous: int, mark: int) -> None:
        self.marks.append(Mark(self._taken[mark], kind))
        peak, self.tape.step_peak = self.tape.step_peak, self.tape.model.allocated
        if kind == "eval" and self.stepper.has_optimizer:
            self.evaluated = True
            return
        self._trained += 1
        self._since_epoch += 1
        now = (peak, self.tape.most_reserved)
        self._alike = self._alike + 1 if now == self._last else 0
        self._last = now
        if self._over() and not (self._is_patient and self.reaching.ahead(sys._getframe())):
            self.enough()

    @property
    def _is_patient(self) -> bool:
        return time.monotonic() - self._begin < PATIENT

    @property
    def settled(self) -> bool:
        return self._alike >= ALIKE - 1

    def _over(self) -> bool:
        if self._epochs:
            return self.evaluated and (self.settled or self._since_epoch >= self.steps) and self._epochs > 1
        if self._in_loader:
            return False
        if self.settled and (self.evaluated or time.monotonic() - self._begin > LONG):
            return True
        return self._trained >= self.steps

    _in_loader = False

    # -- modules ---------------------------------------------------------------------------------------------------

    def _watch_modules(self) -> None:
        def made(original: Any) -> Any:
            def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
                if self._depth == 0:
                    self._outermost(module)
                self._depth += 1
                outer, self.tape.module = self.tape.module, self._names.get(id(module), self.tape.module)
                try:
                    return original(module, *args, **kwargs)
                finally:
                    self._depth -= 1
                    self.tape.module = outer

            return __call__

        hooks.wrap(torch.nn.Module, "__call__", made)

    def _outermost(self, module: Any) -> None:
        self.stepper.forward(id(module), bool(module.training))
        if id(module) not in self._known:
            self._known.add(id(module))
            self._kept.append(module)
            for name, part in module.named_modules():
                full = f"{type(module).__name__}.{name}" if name else type(module).__name__
                self._names.setdefault(id(part), full)
                for one in (*part.parameters(recurse=False), *part.buffers(recurse=False)):
                    self._owners.setdefault(id(one), full)
                    self._know(one)

    def _know(self, parameter: Any) -> None:
        self._mark("parameters", parameter, parameter)
        if id(parameter) in self._known or not isinstance(parameter, torch.nn.Parameter):
            return
        self._known.add(id(parameter))
        self._kept.append(parameter)
        if parameter.requires_grad and parameter.is_leaf:
            parameter.register_post_accumulate_grad_hook(lambda one: self._mark("gradients", one.grad, one))

    def _mark(self, kind: str, tensor: Any, parameter: Any) -> None:
        """Say what a tensor is to a parameter, and so which module's it is."""
        number = self.tape.number_of(tensor)
        if number:
            self.kinds[kind].add(number)
            if (owner := self._owners.get(id(parameter))) is not None:
                self.modules[owner].add(number)

    # -- optimizers ------------------------------------------------------------------------------------------------

    def _watch_optimizers(self) -> None:
        def before(optimizer: Any) -> None:
            for parameter in _parameters(optimizer):
                self._know(parameter)
                self._mark("gradients", parameter.grad, parameter)
            self.tape.phase = Phase.OPTIMIZER

        def after(optimizer: Any) -> None:
            self.tape.phase = Phase.FORWARD
            for parameter, state in optimizer.state.items():
                for value in state.values() if isinstance(state, dict) else ():
                    self._mark("optimizer state", value, parameter)
            parameters = frozenset(id(one) for one in _parameters(optimizer))
            self.stepper.optimizer(parameters, id(optimizer))

        hooks.optimizers(lambda _: self.stepper.optimizer_created(), before, after)

    # -- epochs ----------------------------------------------------------------------------------------------------

    def _watch_loaders(self) -> None:
        def made(original: Any) -> Any:
            return lambda loader: self._batches(loader, original(loader))

        hooks.wrap(torch.utils.data.DataLoader, "__iter__", made)

    def _batches(self, loader: Any, batches: Iterator[Any]) -> Iterator[Any]:
        """An epoch: it ends early once its batches tell nothing new, so that what comes after it is reached."""
        before = self._trained
        figures: list[tuple[int, int]] = []
        outer, self._in_loader = self._in_loader, True
        for batch in batches:
            self.stepper.batch(id(loader))
            yield batch
            trained = self._trained - before
            figures.append((self.tape.model.allocated, self.tape.most_reserved))
            same = len(set(figures[-ALIKE:])) == 1 and len(figures) > ALIKE
            if (trained and (self.settled or trained >= self.steps)) or (
                not trained and (same or len(figures) >= MOST_EVALUATED) and self._trained
            ):
                frame = sys._getframe(1)
                if trained and self._is_patient and self.reaching.inside(frame):
                    continue
                self.reaching.cut_short(frame)
                self.cut_epochs += 1
                break
        self._in_loader = outer
        if self._trained > before:
            self._epochs += 1
            self._since_epoch = 0
            self._alike = 0


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]

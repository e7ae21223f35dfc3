"""Follows a program on its way: where its steps end, which tensors are weights, gradients and optimizer state, when enough was seen;
which of the phases that its text shows have run, and which are still to come from where it stands."""

from __future__ import annotations

import ast
import functools
import operator
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

import torch

from gpulint import marks
from gpulint.forecasting.child.tape import Tape
from gpulint.forecasting.phases import Outline, PhaseStart, Scope, Way
from gpulint.forecasting.recording import Mark, Phase
from gpulint.runtime.observing.lines import LineCounter
from gpulint.runtime.observing.stepping import Stepper
from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.plain import attributes_of
from gpulint.runtime.record.options import join_lines
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
            for parameter in hooks.parameters_of(optimizer):
                self._know(parameter)
                self._mark("gradients", parameter.grad, parameter)
            self.tape.phase = Phase.OPTIMIZER

        def after(optimizer: Any) -> None:
            self.tape.phase = Phase.FORWARD
            for parameter, state in optimizer.state.items():
                for value in state.values() if isinstance(state, dict) else ():
                    self._mark("optimizer state", value, parameter)
            parameters = frozenset(id(one) for one in hooks.parameters_of(optimizer))
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


# -- phases --------------------------------------------------------------------------------------------------------


class Reaching:
    """Counts the lines that begin phases, in files compiled after `start`."""

    def __init__(self, outline: Outline) -> None:
        self._phases = outline.phases
        self._hosted = {number for number, one in enumerate(outline.phases) if one.hosted}
        self._scopes: dict[str, list[Scope]] = {}
        for scope in outline.scopes:
            self._scopes.setdefault(os.path.realpath(scope.file), []).append(scope)
        self._real = functools.cache(os.path.realpath)
        self._cut: set[int] = set()
        places = [(one.file, one.line) for one in outline.phases]
        self.counter = LineCounter(join_lines(places), lambda _: None, measuring=False)

    def start(self) -> None:
        self.counter.start()

    def left(self) -> list[PhaseStart]:
        """What has not run and may yet: from where the program's main thread stands, and in loops that were cut short."""
        ident = threading.main_thread().ident
        frame = sys._current_frames().get(ident) if ident is not None else None
        numbers = sorted(one for one in self._cut | self.ahead(frame) if not self._ran(one))
        return [self._phases[one] for one in numbers]

    def ahead(self, frame: FrameType | None) -> set[int]:
        """The phases that have not run and that lie after the lines on the stack, or in a loop around them."""
        found: set[int] = set()
        standing = False
        for own, scope in self._own(frame):
            standing = True
            loops = [loop for loop in scope.loops if loop[0] <= own.f_lineno <= loop[1]]
            for way in scope.ways:
                again = any(first <= way.line <= last for first, last in loops)
                if again or way.line > own.f_lineno:
                    found |= self._open(way, own)
        if standing:
            found |= self._hosted
        return {one for one in found if not self._ran(one)}

    def inside(self, frame: FrameType | None) -> set[int]:
        """Those in the body of the innermost loop in which the program stands."""
        for own, scope in self._own(frame):
            loops = [loop for loop in scope.loops if loop[0] <= own.f_lineno <= loop[1]]
            if not loops:
                return set()
            first, last = max(loops)
            ways = (way for way in scope.ways if first <= way.line <= last)
            return {one for way in ways for one in self._open(way, own) if not self._ran(one)}
        return set()

    def cut_short(self, frame: FrameType | None) -> None:
        """A loop ends early."""
        self._cut |= self.inside(frame)

    def _own(self, frame: FrameType | None) -> Iterator[tuple[FrameType, Scope]]:
        """The frames of the program's own files, the innermost first, each with its scope."""
        while frame is not None:
            scopes = self._scopes.get(self._real(frame.f_code.co_filename), ())
            around = [one for one in scopes if one.first <= frame.f_lineno <= one.last]
            if around:
                scope = max(around, key=lambda one: one.first)
                is_module = frame.f_code.co_name == "<module>"
                if is_module == (scope.first == 0):
                    yield frame, scope
            frame = frame.f_back

    def _open(self, way: Way, frame: FrameType) -> set[int]:
        """The phases of a way, unless a condition that is the same each time keeps from it."""
        closed = any(decided(guard, frame) is False for guard in way.guards)
        return set() if closed else set(way.phases)

    def _ran(self, number: int) -> bool:
        phase = self._phases[number]
        return self.counter.ran(phase.file, phase.line)


def decided(guard: str, frame: FrameType) -> bool | None:
    """What a condition of names, attributes and constants is now; None where that is not known. Nothing of the program's runs for
    it."""
    return _truth(ast.parse(guard, mode="eval").body, frame)


_PLAIN = (bool, int, float, str, type(None))
_UNKNOWN = object()
_IDENTITY: dict[type[ast.cmpop], Any] = {ast.Is: operator.is_, ast.IsNot: operator.is_not}
_COMPARED: dict[type[ast.cmpop], Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    **_IDENTITY,
}


def _truth(node: ast.expr, frame: FrameType) -> bool | None:
    if isinstance(node, ast.BoolOp):  # decided as soon as one decides it
        both = isinstance(node.op, ast.And)
        every = [_truth(one, frame) for one in node.values]
        return (not both) if (not both) in every else None if None in every else both
    if isinstance(node, ast.UnaryOp):
        inner = _truth(node.operand, frame)
        return None if inner is None else not inner
    if isinstance(node, ast.Compare):
        return _compared(node, frame)
    value = _value(node, frame)
    return bool(value) if isinstance(value, _PLAIN) else None


def _compared(node: ast.Compare, frame: FrameType) -> bool | None:
    one, other = _value(node.left, frame), _value(node.comparators[0], frame)
    compare = _COMPARED.get(type(node.ops[0]))
    if compare is None or len(node.ops) > 1 or one is _UNKNOWN or other is _UNKNOWN:
        return None
    plain = isinstance(one, _PLAIN) and isinstance(other, _PLAIN)
    try:
        return bool(compare(one, other)) if plain or type(node.ops[0]) in _IDENTITY else None
    except TypeError:
        return None


def _value(node: ast.expr, frame: FrameType) -> Any:
    """The object that an expression names, as far as it can be known without running code of the program's."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id, _UNKNOWN))
    if isinstance(node, ast.Attribute):
        return (attributes_of(_value(node.value, frame)) or {}).get(node.attr, _UNKNOWN)
    return _UNKNOWN

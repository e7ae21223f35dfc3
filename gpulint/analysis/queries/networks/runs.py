"""The calls of a function that run a network: told apart from the layers that a network runs within itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from gpulint.analysis.domain.values import Graph, Value, in_text_order
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, settled
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.networks.forwards import Forward, forward_of
from gpulint.analysis.syntax.nodes import key_of

_DEEPEST: Final = 3


@dataclass(frozen=True, slots=True)
class Run:
    """A call that runs `network`, the expression `named`: by the call `inner` in the frame `where`, the call itself or one below it."""

    call: ast.Call
    frame: Frame
    network: Value
    named: Any
    inner: ast.Call
    where: Frame

    @property
    def is_direct(self) -> bool:
        """Whether the call itself is of the network."""
        return self.inner is self.call

    @property
    def method(self) -> str:
        """The method of the network that runs it, by a name of its own; empty where the network itself is called."""
        func = self.inner.func
        return func.attr if isinstance(func, ast.Attribute) and self.named is not func else ""

    def holds(self, frame: Frame) -> bool:
        """Whether a frame is of the same function, or of a call below it."""
        return frame.function is self.frame.function or self.frame in frame.around


def runs(evaluator: Evaluator, frame: Frame, parts: bool = False) -> tuple[Run, ...]:
    """The runs of a frame's function, in the order of the text; of a call below several, one for each network. `parts`: of a network's
    call of its own method those of its parts."""
    return settled(evaluator, frame, (runs, parts), lambda: tuple(_runs(evaluator, frame, parts)))  # type: ignore[no-any-return]


def _runs(evaluator: Evaluator, frame: Frame, parts: bool) -> Iterator[Run]:
    flow = frame.flow
    for call in sorted(flow.every_call, key=lambda one: (one.lineno, one.col_offset)):
        if flow.statement_of(call) not in flow.unreachable:
            yield from runs_of(evaluator, call, frame, parts)


def runs_of(evaluator: Evaluator, call: ast.Call, frame: Frame, parts: bool = False) -> Iterator[Run]:
    """The runs that a call is: of a network that is called, by whatever method, or of those that a function of the project runs and
    gives back what they give."""
    direct = forward_of(evaluator, call, frame)
    if direct is not None:
        yield Run(call, frame, direct.network, direct.expression, call, frame)
        return
    if evaluator.value_of(call.func, frame).kind not in ("function", "object"):
        return
    for one in dict.fromkeys(_ran_below(evaluator, call, frame, parts)):
        yield Run(call, frame, one.network, one.expression, one.call, one.frame)


def _ran_below(evaluator: Evaluator, call: ast.Call, frame: Frame, parts: bool) -> Iterator[Forward]:
    """The networks run by a call, or below it, whose graph is in what it gives: of each that which runs the others."""
    value = evaluator.value_of(call, frame)
    if value.kind in ("object", "module", "optimizer"):
        return
    for one in _parts(evaluator, value):
        if one.graph is Graph.NONE or one.kind in ("module", "parameter", "list", "dict"):
            continue  # what is in a list has been made elsewhere
        for node, where in in_text_order(one.origins):
            chain = where.leading_to(node) if where is not None else []
            at = chain.index((call, frame)) if (call, frame) in chain else 0
            found = (_ran(evaluator, each[0], each[1], parts) for each in reversed(chain[: at + 1]) if at)
            yield from islice(filter(None, found), 1)
            # of its own weights alone: `x @ self.weight`
            of_weights = one.kind == "tensor" and evaluator.thing(node, where).kind in ("module", "parameter")
            own = _ran(evaluator, call, frame, parts) if of_weights else None
            yield from (own,) if own is not None else ()


def _ran(evaluator: Evaluator, call: Any, frame: Frame, parts: bool) -> Forward | None:
    """The network that a call runs, by whatever method; `parts`: none by its own."""
    func = getattr(call, "func", None)
    direct = forward_of(evaluator, call, frame) if func is not None else None
    if direct is not None or not isinstance(func, ast.Attribute):
        return direct
    base = evaluator.value_of(func.value, frame)
    is_own = parts and key_of(func.value) == frame.function.self_name
    is_method = base.kind == "module" and evaluator.method(base.ref, func.attr) is not None
    return Forward(call, frame, base, func.value) if is_method and not is_own else None


def _parts(evaluator: Evaluator, value: Value) -> Iterator[Value]:
    """A value, and what is in it where it is a container."""
    yield value
    if value.kind in ("list", "dict"):
        yield evaluator.element(value.but(parts=None))
    yield from value.inside


def is_of_module(evaluator: Evaluator, function: Function) -> bool:
    """Whether a function is a method of a module, or stands in one."""
    function = function.around[-1]
    cls = function.cls if function.takes_self else None
    return cls is not None and evaluator.instance(cls).kind == "module"


def modes_within(evaluator: Evaluator, run: Run) -> set[str]:
    """The grad modes, `on` and `off`, of what the forward of a network of the project runs of it, or its method by a name of its own: of
    a network of which nothing is known of any class of the project that has such a method; empty where nothing is seen."""
    several = [ran_within(evaluator, run)]
    if run.network.ref is None and run.method:
        home = run.where.function.file
        classes = (cls for file in evaluator.program.searched(run.method, home) for cls in file.classes)
        methods = (cls.methods[run.method] for cls in classes if run.method in cls.methods)
        own = (evaluator.root(one) for one in methods if is_of_module(evaluator, one))
        several = [_ran_in(evaluator, one, _DEEPEST) for one in own]
    return {"off" if is_off else "on" for each in several for is_off, _ in each}


def ran_within(evaluator: Evaluator, run: Run) -> Iterator[tuple[bool, Forward | None]]:
    """What a run runs of a network of the project, each part with whether grad is off there; None for what is not followed."""
    inner = entered(evaluator, run)
    return _ran_in(evaluator, inner, _DEEPEST) if inner is not None else iter(())


def entered(evaluator: Evaluator, run: Run) -> Frame | None:
    """The frame of what a run runs of a network of the project: its forward, or a method by a name of its own; None where it is not seen."""
    method = evaluator.method(run.network.ref, run.method or "forward")
    return evaluator.enter(method, run.inner, run.where, run.network) if method is not None else None


def _ran_in(evaluator: Evaluator, frame: Frame, depth: int) -> Iterator[tuple[bool, Forward | None]]:
    for call in frame.flow.every_call:
        made = evaluator.value_of(call.func, frame)
        method, direct = made.function, forward_of(evaluator, call, frame)
        if (method is None and direct is None) or evaluator.is_dead(call, frame):
            continue
        inner = evaluator.enter(method, call, frame, made.receiver) if method is not None and depth else None
        if evaluator.modes.own(call, frame)[0] == "off":
            yield True, direct
        elif inner is not None:
            yield from _ran_in(evaluator, inner, depth - 1)
        else:
            yield False, direct

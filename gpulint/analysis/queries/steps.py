"""What a function runs of networks: forwards, backwards and optimizer steps, by the loops that they are in. Summed up once."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.consumers import goes_backward_by
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, remembered
from gpulint.analysis.project.file import File, Function
from gpulint.analysis.queries.calls import all_called
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.networks.runs import Run
from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import called_on, iterated, key_of, last_name

Work = Literal["train", "forward"]
_DEEPEST: Final = 3  # callers, one of the other
_Done = tuple[Work, bool, bool, bool]  # of an event: work, within, over_data, gathers


@dataclass(frozen=True, slots=True)
class Event:
    """Work that a call does: `loops` are those around it in its function, innermost first; `within` says that what is called does it in
    a loop of its own, or to a network of its own; `gathers` that it is a backward, and no step of an optimizer."""

    work: Work
    node: Any
    loops: tuple[Any, ...]
    within: bool = False
    over_data: bool = False  # one of those loops runs through more than a count
    gathers: bool = False
    own: bool = False  # what is trained is made in the same function: a run, not a step


class Steps:
    """The events of functions, remembered."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._events: dict[Function, tuple[Event, ...]] = {}

    def of(self, function: Function) -> tuple[Event, ...]:
        """The events of a function, those of the functions that it calls among them."""
        return remembered(self._events, function, (), lambda: tuple(self._find(function)))  # type: ignore[no-any-return]

    def root(self, function: Function) -> Frame:
        """The frame of a function that stands for all calls."""
        return self._evaluator.root(function)

    def _find(self, function: Function) -> list[Event]:
        frame, flow = self._evaluator.root(function), function.flow
        found: list[Event] = []
        for call in (one for one in flow.every_call if flow.statement_of(one) not in flow.unreachable):
            for work, within, over_data, gathers in self._does(call, frame):
                own = work == "train" and self._is_own(call, frame)
                loops = tuple(flow.loops(call))
                found.append(Event(work, call, loops, within, over_data, gathers, own))
        return found

    def _does(self, call: ast.Call, frame: Frame) -> list[_Done]:
        evaluator, name, on = self._evaluator, last_name(call.func), called_on(call)
        functions = all_called(evaluator, call, frame)
        found: dict[_Done, None] = {}
        for function, receiver in functions:
            is_network = function.name == "forward" and receiver is not None and receiver.kind == "module"
            found |= dict.fromkeys(self._of_network(function) if is_network else self._called(function))
        if functions:
            return list(found)
        row = evaluator.table.own(evaluator.value_of(on, frame).kind, name) if on is not None else None
        does = "backward" if on is not None and name == "backward" else row.does if row is not None else ""
        if does in ("step", "backward"):
            return [("train", False, False, does == "backward")]
        forward = forward_of(evaluator, call, frame)
        if forward is None:
            return []
        is_called = forward.expression is call.func  # itself, not a method of a library's
        method = evaluator.method(forward.network.ref, "forward") if is_called else None
        return self._of_network(method)

    def _of_network(self, method: Function | None) -> list[_Done]:
        """What a network does: what it runs of its own parts, in however many rounds, is one forward."""
        inner = self._called(method) if method is not None else []
        return [*(one for one in inner if one[0] == "train"), ("forward", False, False, False)]

    def _called(self, function: Function) -> list[_Done]:
        events = self.of(function)
        own = any(one.own for one in events)
        found: dict[_Done, None] = {}
        for one in events:
            over_data = one.over_data or any(self.is_over_data(loop, function) for loop in one.loops)
            found[one.work, own or one.within or bool(one.loops), over_data, one.gathers] = None
        return list(found)

    def is_over_data(self, loop: Any, function: Function) -> bool:
        """Whether a loop runs through things that are no parts of a network, and does not count: also under another name, `bar = tqdm(range(n))`."""
        one = self._things(loop, self._evaluator.root(function))
        return one is not None and one.kind != "number" and not _has_network(one)

    def is_over_parts(self, loop: Any, frame: Frame) -> bool:
        """Whether a loop runs through networks or what is in them: `for block in self.blocks`, or by their numbers, `self.blocks[i]`."""
        one, flow = self._things(loop, frame), frame.flow
        if one is None or _has_network(one):
            return one is not None
        numbers = [use for made in flow.given.get(iterated(loop), ()) for use in flow.uses_of(made)]
        above = (flow.parents[use] for use in numbers)
        items = (each for each in above if isinstance(each, ast.Subscript) and each.slice in numbers)
        return any(_has_network(self._evaluator.value_of(each, frame)) for each in items)

    def _things(self, loop: Any, frame: Frame) -> Value | None:
        """What a loop runs through, one by one; None for a `while`."""
        through = iterated(loop)
        found = self._evaluator.value_of(through, frame) if through is not None else None
        return self._evaluator.element(found) if found is not None else None

    def _is_own(self, call: ast.Call, frame: Frame) -> bool:
        """Whether the optimizer that takes a step is made in the same function, or comes out of a call there that is not seen; of a loss whether
        the networks are that have made it."""
        base, name = called_on(call, "step", "backward"), last_name(call.func)
        if not isinstance(base, ast.Name) or frame.function.is_module:
            return False
        value = self._evaluator.value_of(base, frame)
        if name == "backward":
            ran = [forward_of(self._evaluator, *one) for one in value.origins if isinstance(one[0], ast.Call)]
            nets = [origin for one in ran if one is not None for origin in one.network.origins]
            return bool(nets) and all(isinstance(node, ast.Call) and where is frame for node, where in nets)
        reaching = frame.flow.reaching(base)
        made = [one.value for one in reaching if one.kind == "assign" and isinstance(one.value, ast.Call)]
        if value.kind not in ("optimizer", "unknown") or len(made) < len(reaching):
            return False
        if value.origins:
            return all(where is frame and isinstance(node, ast.Call) for node, where in value.origins)
        return all(self._evaluator.value_of(one.func, frame).kind in ("unknown", "library") for one in made)


def _has_network(value: Value) -> bool:
    inside = value.inside if value.kind == "tuple" else ()
    return value.kind in ("module", "parameter") or any(map(_has_network, inside))


# -- what runs as often as a step


def is_in_step(steps: Steps, evaluator: Evaluator, run: Run) -> bool:
    """Whether a run is made as often as a backward or an optimizer's step: in the innermost loop of one, in its function where no loop
    is around, or in a function that such a place calls."""
    return _is_beside(steps, evaluator, run.frame.function, run.call, _DEEPEST)


def _is_beside(steps: Steps, evaluator: Evaluator, function: Function, call: Any, depth: int) -> bool:
    if any(not one.within for one in steps_beside(steps, function, call)):
        return True
    if function.flow.loops(call) or not depth:
        return False
    sites = evaluator.callers(function)
    above = (_is_beside(steps, evaluator, one.frame.function, one.call, depth - 1) for one in sites)
    return any(above) or (not sites and goes_backward_by(evaluator, function))


def trains_in(steps: Steps, evaluator: Evaluator, file: File) -> bool:
    """Whether anything in a file trains, itself or by a framework that goes backward after one of its methods."""
    trains = any(event.work == "train" for one in file.parts for event in steps.of(one))
    return trains or any(goes_backward_by(evaluator, one) for one in file.functions)


def steps_beside(steps: Steps, function: Function, call: Any) -> list[Event]:
    """The work of training in the innermost loop around a call, or in its function where none is; none where the call stands under a
    condition that none of it does: it is made now and then."""
    flow, frame = function.flow, steps.root(function)
    loops = [one for one in flow.loops(call) if not steps.is_over_parts(one, frame)]
    events = [one for one in steps.of(function) if one.work == "train" and one.node is not call]
    beside = [one for one in events if (loops[0] in one.loops if loops else not one.loops)]
    tests = (test for test, _ in flow.conditions(call) if not loops or loops[0] in flow.loops(test))
    asked = {test for test in tests if not _stays(flow, test, loops)}
    return beside if any(asked <= {test for test, _ in flow.conditions(one.node)} for one in beside) else []


def _stays(flow: Flow, test: Any, loops: list[Any]) -> bool:
    """Whether a condition says the same in all rounds of a loop: whether there is a teacher."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        test = test.left
    key = key_of(test)
    given = flow.definitions.get(key, ()) if key is not None else ()
    inside = (one for one in given if loops and loops[0] in flow.loops(one.statement))
    return key is not None and not any(inside)

"""What a function runs of networks: forwards, backwards and optimizer steps, by the loops that they are in. Summed up once."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Literal

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, remembered
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.syntax.nodes import called_on, iterated

Work = Literal["train", "forward"]
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
        frame = self._evaluator.root(function)
        found: list[Event] = []
        for name, calls in function.flow.calls.items():
            for call in calls:
                if function.flow.statement_of(call) in function.flow.unreachable:
                    continue
                for work, within, over_data, gathers in self._does(name, call, frame):
                    own = work == "train" and name in ("step", "backward") and self._is_own(call, frame)
                    loops = tuple(function.flow.loops(call))
                    found.append(Event(work, call, loops, within, over_data, gathers, own))
        return found

    def _does(self, name: str, call: ast.Call, frame: Frame) -> list[_Done]:
        func = call.func
        evaluator = self._evaluator
        if isinstance(func, ast.Attribute):
            base = evaluator.value_of(func.value, frame)
            method = evaluator.method(base.ref, name)
            if method is not None:
                return self._called(method)
            if name == "backward":
                return [("train", False, False, True)]
            row = evaluator.table.own(base.kind, name)
            if row is not None and row.does in ("step", "backward"):
                return [("train", False, False, row.does == "backward")]
        direct: _Done = ("forward", False, False, False)
        forward = forward_of(evaluator, call, frame)
        if forward is not None and forward.expression is not func:
            return [direct]
        target = evaluator.value_of(func, frame)
        if target.function is not None:
            return self._called(target.function)
        if forward is not None:
            method = evaluator.method(target.ref, "forward")
            inner = self._called(method) if method is not None else []
            # what it runs of its own parts, in however many rounds, is one forward
            return [*(one for one in inner if one[0] == "train"), direct]
        method = evaluator.method(target.ref, "__call__") if target.kind == "object" else None
        return self._called(method) if method is not None else []

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
        base = called_on(call)
        if not isinstance(base, ast.Name) or frame.function.is_module:
            return False
        value = self._evaluator.value_of(base, frame)
        if call.func.attr == "backward":  # type: ignore[attr-defined]
            ran = [forward_of(self._evaluator, *one) for one in value.origins if isinstance(one[0], ast.Call)]
            nets = [origin for one in ran if one is not None for origin in one.network.origins]
            return bool(nets) and all(isinstance(node, ast.Call) and where is frame for node, where in nets)
        if value.kind not in ("optimizer", "unknown") or call.func.attr != "step":  # type: ignore[attr-defined]
            return False
        reaching = frame.flow.reaching(base)
        made = [one.value for one in reaching if one.kind == "assign" and isinstance(one.value, ast.Call)]
        if not reaching or len(made) < len(reaching):
            return False
        if value.origins and value.kind == "optimizer":
            return all(where is frame and isinstance(node, ast.Call) for node, where in value.origins)
        return all(self._evaluator.value_of(one.func, frame).kind in ("unknown", "library") for one in made)


def _has_network(value: Value) -> bool:
    inside = value.inside if value.kind == "tuple" else ()
    return value.kind in ("module", "parameter") or any(map(_has_network, inside))

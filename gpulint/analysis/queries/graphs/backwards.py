"""The backwards of a function: what each goes through, and what else goes through that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import Graph, in_text_order
from gpulint.analysis.evaluate.consumers import Use
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.graphs.carried import carried
from gpulint.analysis.queries.networks.forwards import forward_of, forwards
from gpulint.analysis.queries.outcome import outcome, place_in
from gpulint.analysis.syntax.flow import ENTRY, Flow, are_exclusive
from gpulint.analysis.syntax.nodes import arguments, called_on, key_of, keyword

_NAMES: Final = ("backward", "manual_backward")


@dataclass(frozen=True, slots=True)
class Backward:
    """A call that goes backward through what the expression `through` gives. `origins` are the calls that made its graph, each with the
    frame that it stands in."""

    call: ast.Call
    frame: Frame
    through: ast.expr
    origins: frozenset[tuple[Any, Frame]]

    def says(self, name: str) -> bool:
        """Whether an argument is given as `True`; what is chosen elsewhere somebody has chosen."""
        return is_true(keyword(self.call, name))


def is_true(node: Any) -> bool:
    """Whether an expression is the constant `True`."""
    return isinstance(node, ast.Constant) and node.value is True


def backwards(evaluator: Evaluator, function: Function) -> Iterator[Backward]:
    """Those of a function, in the order of the text."""
    frame, flow = evaluator.root(function), function.flow
    named = (one for name in _NAMES for one in flow.calls.get(name, ()) if called_on(one))
    # autograd's gives nothing
    calls = [one for one in named if not isinstance(flow.parents[one], ast.Assign)]
    for call in sorted(calls, key=lambda one: (one.lineno, one.col_offset)):
        if flow.statement_of(call) in flow.unreachable or evaluator.is_dead(call, frame):
            continue
        through = _through(evaluator, call, frame)
        value = evaluator.value_of(through, frame)
        made = [one for one in in_text_order(value.origins) if one[1] is not None and not _is_of_given(*one)]
        calls_in = (one for one in made if isinstance(one[0], ast.Call))
        runs = [one for one in calls_in if forward_of(evaluator, *one) is not None]
        yield Backward(call, frame, through, frozenset(runs or made))


def _is_of_given(node: Any, frame: Frame) -> bool:
    """Whether a graph is that of what the function was given, or is begun by nothing but an operation on that."""
    while isinstance(node, (ast.Call, ast.Subscript, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name):
            called = isinstance(frame.flow.parents.get(node), ast.Call)
            given = any(one.kind == "parameter" for one in frame.flow.reaching(node))
            return given and not called and node.id != frame.function.self_name
    return isinstance(node, ast.arg)


def _through(evaluator: Evaluator, call: ast.Call, frame: Frame) -> ast.expr:
    """What a call goes backward through: the tensor that it is called on, or what it is given."""
    base = call.func.value  # type: ignore[attr-defined]
    if not call.args or evaluator.value_of(base, frame).kind == "tensor":
        return base  # type: ignore[no-any-return]
    return base if evaluator.value_of(base, frame).graph is not Graph.NONE else call.args[0]


def again(evaluator: Evaluator, backward: Backward) -> Use | None:
    """What goes backward through a part of the same graph once more, at the same time or later; None where nothing is seen to."""
    own = backward.frame.function
    for node, where in in_text_order(backward.origins):
        outer = next((frame for frame in where.around if frame.function is own), where)
        flow, mine = outer.flow, _places_in(evaluator, backward, outer.function)
        for use in outcome(evaluator, node, where).wanted:
            if use.node is backward.call or (use.row is not None and use.row.does == "step"):
                continue  # a step that is given a closure goes backward by it
            at = place_in(outer.function, use.node, use.frame)
            if at is None or not mine or not all(_is_apart(flow, at, one) for one in mine):
                return use
    return None


def _places_in(evaluator: Evaluator, backward: Backward, function: Function) -> list[Any]:
    """Where a function runs a backward: itself, or by the calls that lead to it."""
    if backward.frame.function is function:
        return [backward.call]
    sites = evaluator.callers(backward.frame.function)
    return [one.call for one in sites if one.frame.function is function]


def _is_apart(flow: Flow, one: Any, backward: Any) -> bool:
    """Whether a place is passed before a backward comes, in rounds that make the graph anew, or where it does not come at all."""
    if are_exclusive(list(flow.around(one)), list(flow.around(backward))):
        return True
    before = flow.order[flow.statement_of(one)] < flow.order[flow.statement_of(backward)]
    return before and flow.loops(one) == flow.loops(backward)


def older_than_round(evaluator: Evaluator, backward: Backward) -> Any:
    """The loop around a backward whose rounds all go through a graph that was there before, or that each hands to the next; None where
    each makes its own."""
    flow, function = backward.frame.flow, backward.frame.function
    through = backward.through
    bound = flow.reaching(through) if through in flow.parents and key_of(through) is not None else ()
    handed = not backward.origins and any(one.kind in ("parameter", "loop") for one in bound)
    callers = {site.frame.function for site in evaluator.callers(function)}
    for loop in flow.loops(backward.call):
        if handed:
            return loop
        for node, where in in_text_order(backward.origins):
            at = place_in(function, node, where)
            inside = at is not None and loop in flow.loops(at)
            if not inside and (at is not None or where.function in callers):
                return loop
            if inside and carries(evaluator, at, backward.frame, loop):
                return loop
    return None


def carries(evaluator: Evaluator, call: Any, frame: Frame, loop: Any) -> bool:
    """Whether what a call is given has the graph of what it has made itself in the round before: it comes back to it in a circle of the
    loop's own statements, or stays in an attribute of the network."""
    if not isinstance(call, ast.Call) or frame.flow.loops(call)[:1] != [loop]:
        return False
    return _keeps_state(evaluator, call, frame) or any(carried(evaluator, call, frame, arguments(call)))


def _keeps_state(evaluator: Evaluator, call: ast.Call, frame: Frame, depth: int = 3) -> bool:
    """Whether a network's forward, or that of a part, reads what an attribute has kept of an earlier one with its graph."""
    forward = evaluator.method(evaluator.value_of(call.func, frame).ref, "forward")
    if forward is None:
        return False
    for key, uses in forward.flow.uses.items():
        for use in uses if key.startswith(f"{forward.self_name}.") else ():
            value = evaluator.value_of(use, evaluator.root(forward))
            if value.kind == "tensor" and value.graph is Graph.LIVE and ENTRY in forward.flow.reaching(use):
                return True
    layers = forwards(evaluator, forward) if depth else ()
    return any(_keeps_state(evaluator, one.call, one.frame, depth - 1) for one in layers)

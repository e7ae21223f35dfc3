"""What a step of training trains: what the optimizers that are stepped after a backward have, and what runs as often as they are."""

from __future__ import annotations

import ast
from typing import Any, Final

from gpulint.analysis.domain.values import Value, in_text_order
from gpulint.analysis.evaluate.consumers import Use, goes_backward_by
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.project.file import File, Function
from gpulint.analysis.queries.effects import origins_of, share
from gpulint.analysis.queries.networks.runs import Run
from gpulint.analysis.queries.networks.trained import Update, all_made, stepped_after
from gpulint.analysis.queries.steps import Event, Steps
from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import argument, key_of

_DEEPEST: Final = 3


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


def trained_by(evaluator: Evaluator, network: Value, backward: Use) -> set[Any] | None:
    """Where what is stepped between a backward and the next one was made, `None` among it for what is not seen; None where the network, a part
    of it or what it is a part of is stepped."""
    made = set().union(*(_had(evaluator, one) for one in stepped_after(evaluator, backward)))
    own = all_made(evaluator, network)
    whole = (all_made(evaluator, evaluator.thing(*one)) | {one} for one in made if one is not None)
    return None if any(share(own, each) for each in whole) else made


def _had(evaluator: Evaluator, step: Update) -> set[Any]:
    """Where the tensors were made that an optimizer steps: origins, and `None` for what is not seen."""
    made: set[Any] = set() if step.origins else {None}
    for call, frame in in_text_order(step.origins):
        given = argument(call, 0, "params") if isinstance(call, ast.Call) else None
        known = given is not None and frame is not None
        found = _tensors_in(evaluator, evaluator.value_of(given, frame), 3) if known else {None}
        made |= {(call, frame) if one == () else one for one in found}
    return made


def _tensors_in(evaluator: Evaluator, value: Value, depth: int) -> set[Any]:
    if value.kind in ("parameters", "parameter", "tensor"):  # a tensor by itself is of no network
        return set(origins_of(evaluator, value)) or {() if value.kind == "tensor" else None}
    if value.kind not in ("list", "tuple", "dict") or not depth:
        return {None}
    groups = dict(value.parts or ()) if value.kind == "dict" else {}
    inner = groups.get("params") or evaluator.element(value)
    if inner.kind == "unknown" and inner.origins:
        return set(inner.origins)
    return _tensors_in(evaluator, inner, depth - 1)

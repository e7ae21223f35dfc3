"""What a step of training trains: what the optimizers that are stepped after a backward have, and what runs as often as they are."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.consumers import Use, goes_backward_by
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.effects import origins_of
from gpulint.analysis.queries.networks.runs import Run
from gpulint.analysis.queries.networks.trained import (
    Update,
    made_at,
    optimizers_of,
    stepped_in,
    updates_after,
)
from gpulint.analysis.queries.steps import Steps
from gpulint.analysis.syntax.nodes import argument

_DEEPEST: Final = 3


def is_in_step(steps: Steps, evaluator: Evaluator, run: Run) -> bool:
    """Whether a run is made as often as a backward or an optimizer's step: in the innermost loop of one, in its function where no loop
    is around, or in a function that such a place calls."""
    return _is_beside(steps, evaluator, run.frame.function, run.call, _DEEPEST)


def _is_beside(steps: Steps, evaluator: Evaluator, function: Function, call: Any, depth: int) -> bool:
    loops = function.flow.loops(call)
    events = [one for one in steps.of(function) if one.work == "train" and not one.within and one.node is not call]
    if any(loops[0] in one.loops if loops else not one.loops for one in events):
        return True
    if loops or not depth:
        return False
    sites = evaluator.callers(function)
    above = (_is_beside(steps, evaluator, one.frame.function, one.call, depth - 1) for one in sites)
    return any(above) or (not sites and goes_backward_by(evaluator, function))


@dataclass(frozen=True, slots=True)
class Trained:
    """What the step after a backward trains: the nodes where what the stepped optimizers have was made, `None` among them for what
    is not seen; and whether any optimizer has a network."""

    made: frozenset[Any]
    has_network: bool


def trained_by(evaluator: Evaluator, network: Value, backward: Use) -> Trained:
    """What is stepped between a backward and the next one, and whether a network is in it."""
    made: set[Any] = set()
    for one in stepped_in(updates_after(evaluator, backward.node, backward.frame)):
        made |= _had(evaluator, one)
    nodes = frozenset(one and one[0] for one in made)
    has = bool(optimizers_of(evaluator, network)) or bool(made_at(evaluator, network) & nodes)
    within = any(
        _is_part(evaluator, part, whole) or _is_part(evaluator, whole, part)
        for part in origins_of(evaluator, network)
        for whole in made
        if whole is not None
    )
    return Trained(nodes, has or within)


def _is_part(evaluator: Evaluator, part: Any, whole: Any) -> bool:
    """Whether what is made at one place is made by the class of what is made at another, or within its very expression."""
    (node, where), (outer, frame) = part, whole
    if any(one is node for one in ast.walk(outer)):
        return True
    made = evaluator.value_of(outer, frame) if isinstance(outer, ast.Call) and frame is not None else None
    cls = where.function.cls if where is not None else None
    if made is None or cls is None or not isinstance(made.ref, Class):
        return False
    return cls in evaluator.program.lineage(made.ref)


def _had(evaluator: Evaluator, step: Update) -> set[Any]:
    """Where the tensors were made that an optimizer steps: origins, and `None` for what is not seen."""
    made: set[Any] = set() if step.origins else {None}
    for call, frame in step.origins:
        given = argument(call, 0, "params") if isinstance(call, ast.Call) else None
        known = given is not None and frame is not None
        made |= _tensors_in(evaluator, evaluator.value_of(given, frame), 3) if known else {None}
    return made


def _tensors_in(evaluator: Evaluator, value: Value, depth: int) -> set[Any]:
    if value.kind in ("parameters", "parameter", "tensor"):
        return set(origins_of(evaluator, value)) or {None}
    if value.kind == "dict" and value.parts:
        value = next((one for key, one in value.parts if key == "params"), value)
        return _tensors_in(evaluator, value, depth - 1) if depth else {None}
    if value.kind in ("list", "tuple", "dict") and depth:
        return _tensors_in(evaluator, evaluator.element(value), depth - 1)
    return {None}

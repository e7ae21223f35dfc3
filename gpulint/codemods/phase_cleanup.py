"""`codemod phase-cleanup`: the cache goes back to the driver between phases, never inside the step loop."""

from __future__ import annotations

import libcst as cst

from gpulint.codemods.editing import Plan, kit_name, with_import
from gpulint.codemods.shape import (
    Shape,
    Statement,
    body_of,
    call_name,
    calls_in,
    dotted,
    is_validation,
    read_shape,
    saves_checkpoint,
)


def apply(module: cst.Module) -> cst.Module:
    """Put `memory.clear()` after validations and checkpoints of an epoch: once where both follow each other, and
    not where the cache is emptied there already."""
    shape = read_shape(module)
    name, imported = kit_name(module)
    plan = Plan()
    for place in shape.epochs:
        if any(step.loop is place.loop for step in shape.steps):
            continue
        body = body_of(place.loop)
        phases = [_is_phase(statement, shape) for statement in body]
        for index, statement in enumerate(body):
            following = body[index + 1 :]
            if phases[index] and not _another_follows(following, shape) and not _clears_soon(following, name):
                plan.put_after(statement, f"{name}.clear()")
    if not plan:
        return module
    made = plan.carry_out(module)
    return made if imported else with_import(made, name)


def _is_phase(statement: Statement, shape: Shape) -> bool:
    return is_validation(statement, shape) or saves_checkpoint(statement)


def _another_follows(following: list[Statement], shape: Shape) -> bool:
    """Whether the next phase comes before any training: then one cleaning after it is enough."""
    for statement in following:
        if _is_phase(statement, shape):
            return True
        if isinstance(statement, (cst.For, cst.While)) or any(
            call_name(call) in shape.functions for call in calls_in(statement)
        ):
            return False
    return False


def _clears_soon(following: list[Statement], name: str) -> bool:
    """Whether one of the simple statements after a phase empties the cache."""
    for statement in following:
        for call in calls_in(statement):
            if dotted(call.func) == f"{name}.clear" or call_name(call) == "empty_cache":
                return True
        if isinstance(statement, (cst.For, cst.While)):
            return False
    return False

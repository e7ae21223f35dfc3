"""`codemod phase-cleanup`: the cache goes back to the driver between phases, never inside the step loop."""

from __future__ import annotations

import libcst as cst

from gpulint.codemods.editing import Plan, kit_name
from gpulint.codemods.shape import (
    Shape,
    Statement,
    body_of,
    call_name,
    calls_in,
    dotted,
    read_shape,
    saves_checkpoint,
    validations,
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
        validating = validations(body, shape)
        phases = [
            validates or saves_checkpoint(s, shape) for s, validates in zip(body, validating, strict=True)
        ]
        for index, statement in enumerate(body):
            if not phases[index] or _clears_soon(body[index + 1 :], name):
                continue
            if not _another_follows(body[index + 1 :], phases[index + 1 :], shape):
                plan.put_after(statement, f"{name}.clear()")
    return plan.carry_out(module, name, imported)


def _another_follows(following: list[Statement], phases: list[bool], shape: Shape) -> bool:
    """Whether the next phase comes before any training: then one cleaning after it is enough."""
    own = set(shape.functions)
    for statement, is_phase in zip(following, phases, strict=True):
        if is_phase:
            return True
        if isinstance(statement, (cst.For, cst.While)) or any(
            shape.calls(call, own) for call in calls_in(statement)
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

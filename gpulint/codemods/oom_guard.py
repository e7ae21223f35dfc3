"""`codemod oom-guard`: recovery and diagnosis around what trains."""

from __future__ import annotations

from typing import Any

import libcst as cst

from gpulint.codemods.editing import Plan, calls_kit, kit_name
from gpulint.codemods.shape import read_shape, walk


def apply(module: cst.Module) -> cst.Module:
    """Decorate each function that has a training loop; put a loop at module level into a `with`.

    The error still ends the program, after its memory is freed and its cause is told: going on is a decision that
    a codemod cannot make. `retry="halve"` is one word more.
    """
    if calls_kit(module, "oom_guard"):
        return module
    shape = read_shape(module)
    name, imported = kit_name(module)
    plan = Plan()
    for place in shape.steps:
        if isinstance(place.scope, cst.FunctionDef):
            if _is_plain(place.scope):
                plan.change[id(place.scope)] = lambda node: _decorated(node, name)
        else:
            outer = place.around[0] if place.around else place.loop
            plan.change[id(outer)] = lambda node: _wrapped(node, name)
    return plan.carry_out(module, name, imported)


def _is_plain(function: cst.FunctionDef) -> bool:
    """Neither a coroutine nor a generator: their frames go on after the call has returned."""
    return function.asynchronous is None and not any(isinstance(n, cst.Yield) for n in walk(function.body))


def _decorated(function: cst.FunctionDef, name: str) -> cst.FunctionDef:
    guard = cst.Decorator(cst.parse_expression(f"{name}.oom_guard()"))
    # Innermost: `staticmethod`, `hydra.main` and the like must stay outside.
    decorators = [*function.decorators, guard]
    if function.decorators:
        return function.with_changes(decorators=decorators)
    return function.with_changes(decorators=decorators, lines_after_decorators=[])


def _wrapped(loop: Any, name: str) -> cst.With:
    return cst.With(
        items=[cst.WithItem(cst.parse_expression(f"{name}.oom_guard()"))],
        body=cst.IndentedBlock(body=[loop.with_changes(leading_lines=[])]),
        leading_lines=loop.leading_lines,
    )

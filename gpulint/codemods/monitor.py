"""`codemod monitor`: a Monitor around the training loop, with its milestones."""

from __future__ import annotations

import functools

import libcst as cst

from gpulint.codemods.editing import Plan, calls_kit, kit_name, with_import
from gpulint.codemods.shape import (
    Loop,
    Place,
    Shape,
    body_of,
    dotted,
    read_shape,
    saves_checkpoint,
    validations,
    walk,
)
from gpulint.codemods.trainers import trainer_calls, with_callback
from gpulint.source.positions import child_nodes

RUN = "memory_run"
EVERY = 100


def apply(module: cst.Module) -> cst.Module:
    """Put a Monitor before each outermost training loop, with lines at steps, validations, checkpoints, epochs; give
    the trainers of Lightning and transformers its callback."""
    if calls_kit(module, "Monitor", "Monitor.install"):
        return module
    shape = read_shape(module)
    name, imported = kit_name(module)
    plan = Plan()
    for place in shape.epochs:
        if body_of(place.loop):
            _around(plan, shape, place, name)
    for call, callback in trainer_calls(module):
        code = f'{name}.Monitor("memory.jsonl", every={EVERY}).{callback}()'
        plan.change[id(call)] = functools.partial(with_callback, code=code)
    if not plan:
        return module
    made = plan.carry_out(module)
    return made if imported else with_import(made, name)


def _around(plan: Plan, shape: Shape, place: Place, name: str) -> None:
    loop = place.loop
    plan.put_before(loop, f'{RUN} = {name}.Monitor("memory.jsonl", every={EVERY})')
    plan.put_after(loop, f"{RUN}.end()")
    for stepping, step_loop in shape.step_statements:
        if step_loop is loop or _contains(loop, step_loop) or _is_called_only_in(shape, step_loop, place):
            plan.put_after(stepping, f"{RUN}.step()")
    if any(step.loop is loop for step in shape.steps):
        _now_and_then(plan, shape, loop)
        return  # one loop over steps: there are no epochs
    body = body_of(loop)
    for statement, validates in zip(body, validations(body, shape), strict=True):
        if validates:
            plan.put_after(statement, f"{RUN}.validation()")
        elif saves_checkpoint(statement):
            plan.put_after(statement, f"{RUN}.checkpoint()")
    plan.put_at_end(loop, f"{RUN}.epoch({_counter(loop)})")


def _now_and_then(plan: Plan, shape: Shape, loop: Loop) -> None:
    """What a loop over steps does every so many of them: validations and checkpoints under a condition."""
    for branch in (node for node in body_of(loop) if isinstance(node, cst.If)):
        for node in walk(branch):
            if isinstance(node, cst.SimpleStatementLine):
                if validations([node], shape)[0]:
                    plan.put_after(node, f"{RUN}.validation()")
                elif saves_checkpoint(node):
                    plan.put_after(node, f"{RUN}.checkpoint()")


def _is_called_only_in(shape: Shape, step_loop: Loop, place: Place) -> bool:
    """Whether a step loop stands in a function that runs within the loop at `place` and nowhere else, and sees the Monitor
    that is made there: both are at the module's level."""
    home = next(step.scope for step in shape.steps if step.loop is step_loop)
    if not isinstance(place.scope, cst.Module) or not isinstance(home, cst.FunctionDef):
        return False
    name = home.name.value
    if shape.functions.get(name) is not home or name in shape.methods:
        return False
    scopes = [shape.module, *(function.body for function in shape.functions.values())]
    return 0 < _mentions(place.loop, name) == sum(_mentions(scope, name) for scope in scopes)


def _mentions(node: cst.CSTNode, name: str) -> int:
    """How often a name is used when a node runs; an attribute of that name is another thing."""
    nodes = list(walk(node))
    attributes = {id(one.attr) for one in nodes if isinstance(one, cst.Attribute)}
    return sum(isinstance(n, cst.Name) and n.value == name and id(n) not in attributes for n in nodes)


def _contains(outer: cst.CSTNode, inner: cst.CSTNode) -> bool:
    return any(child is inner or _contains(child, inner) for child in child_nodes(outer))


def _counter(loop: Loop) -> str:
    """The variable that counts epochs: of `for epoch in range(...)`, or the first of `enumerate`."""
    if not isinstance(loop, cst.For):
        return ""
    if isinstance(loop.target, (cst.Name, cst.Attribute)):
        name = dotted(loop.target)
        return name if _counts(loop.iter) and name != "_" else ""
    if isinstance(loop.target, cst.Tuple) and isinstance(loop.iter, cst.Call):
        first = loop.target.elements[0].value
        called = loop.iter.func
        if isinstance(first, cst.Name) and isinstance(called, cst.Name) and called.value == "enumerate":
            return first.value
    return ""


def _counts(iterated: cst.BaseExpression) -> bool:
    """`range(...)`, also inside a progress bar."""
    if not isinstance(iterated, cst.Call):
        return False
    if isinstance(iterated.func, cst.Name) and iterated.func.value in ("range", "trange"):
        return True
    return bool(iterated.args) and _counts(iterated.args[0].value)

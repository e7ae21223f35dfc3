"""Codemods of training loops: a Monitor around them with its milestones, recovery and diagnosis around what trains, and a cleaning between
phases, never inside the step loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from libcst import matchers

from gpulint.codemods.kit import calls_kit, kit_name, takes_callback, trainer_calls, with_callback
from gpulint.codemods.shape import (
    Loop,
    Place,
    Shape,
    Statement,
    body_of,
    call_name,
    calls_in,
    dotted,
    optimizers_made,
    read_shape,
    saves_checkpoint,
    validations,
    walk,
)
from gpulint.rule import Change, Decorate, Insert, Replace, Wrap
from gpulint.source.positions import nodes_below

RUN = "memory_run"
EVERY = 100


def monitor(module: cst.Module) -> Iterator[Change]:
    """Put a Monitor before each outermost training loop, with lines at steps, validations, checkpoints, epochs; give
    the trainers of Lightning and transformers its callback.

    Steps in a function that does not see the Monitor are counted at the optimizer.
    """
    if calls_kit(module, "Monitor", "Monitor.install"):
        return
    shape = read_shape(module)
    name = kit_name(module)[0]
    places = [place for place in shape.epochs if body_of(place.loop)]
    for place in places:
        alone = sum(other.guarded is place.guarded for other in places) == 1
        yield from _around(shape, place, name, (place.guarded if alone else None) or place.loop)
    for call, callback in trainer_calls(module):
        if takes_callback(call):
            code = f'{name}.Monitor("memory.jsonl", every={EVERY}).{callback}()'
            yield Replace(call, with_callback(call, code))


def steps_elsewhere(module: cst.Module) -> bool:
    """Whether a program makes an optimizer whose steps are not in this file, the only one that a codemod reads. One that is
    handed back at once is the concern of who asked for it."""
    if calls_kit(module, "Monitor", "Monitor.install") or any(trainer_calls(module)):
        return False
    handed_back = {id(one.value) for one in matchers.findall(module, matchers.Return())}  # type: ignore[attr-defined]
    kept = any(id(call) not in handed_back for call in optimizers_made(module))
    return kept and not read_shape(module).epochs


def _line(anchor: cst.CSTNode, code: str, after: bool = True) -> Insert:
    return Insert(anchor, cst.parse_statement(code), after)


def _around(shape: Shape, place: Place, name: str, whole: Statement) -> Iterator[Insert]:
    """The Monitor of a loop, before and after `whole`: the loop, or the `try` whose handlers the run goes on after."""
    loop = place.loop
    seen = [
        (stepping, step_loop)
        for stepping, step_loop in shape.step_statements
        if step_loop is loop
        or any(node is step_loop for node in nodes_below(loop))
        or _is_called_only_in(shape, step_loop, place)
    ]
    counted = "" if seen else ", optimizer_steps=True"
    yield _line(whole, f'{RUN} = {name}.Monitor("memory.jsonl", every={EVERY}{counted})', after=False)
    yield _line(whole, f"{RUN}.end()")
    for stepping, step_loop in seen:
        if stepping is not None:
            yield _line(stepping, f"{RUN}.step()")
        elif body := body_of(step_loop):
            yield _line(body[-1], f"{RUN}.step()")
    if all(step.loop is not loop for step in shape.steps):
        yield from _milestones(shape, body_of(loop))
        yield _line(body_of(loop)[-1], f"{RUN}.epoch({_counter(loop)})")
        return
    # One loop over steps has no epochs; what it does under a condition it does every so many steps.
    for statement in body_of(loop):
        if isinstance(statement, cst.If):
            yield from _milestones(shape, [statement])


def _milestones(shape: Shape, body: list[Statement]) -> Iterator[Insert]:
    """Lines after validations and checkpoints, under the conditions that those are under; after several saves in a row
    one."""
    saving = [saves_checkpoint(statement, shape) for statement in body]
    for at, (statement, validates) in enumerate(zip(body, validations(body, shape), strict=True)):
        if validates:
            yield _line(statement, f"{RUN}.validation()")
        elif isinstance(statement, cst.If) and all(body_of(branch) for branch in _branches(statement)):
            for branch in _branches(statement):
                yield from _milestones(shape, body_of(branch))
        elif saving[at] and not any(saving[at + 1 : at + 2]):
            yield _line(statement, f"{RUN}.checkpoint()")


def _branches(statement: cst.If) -> Iterator[cst.If | cst.Else]:
    yield statement
    if isinstance(statement.orelse, cst.If):
        yield from _branches(statement.orelse)
    elif statement.orelse is not None:
        yield statement.orelse


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
    """How often a name is used when a node runs; an attribute and a keyword of that name are other things."""
    nodes = list(walk(node))
    others = {id(one.attr) for one in nodes if isinstance(one, cst.Attribute)}
    others |= {id(one.keyword) for one in nodes if isinstance(one, cst.Arg)}
    return sum(isinstance(n, cst.Name) and n.value == name and id(n) not in others for n in nodes)


def _counter(loop: Loop) -> str:
    """The variable that counts epochs: of `for epoch in range(...)`, or the first of `enumerate`."""
    if not isinstance(loop, cst.For):
        return ""
    if isinstance(loop.target, (cst.Name, cst.Attribute)):
        name = dotted(loop.target)
        return name if _counts(loop.iter) and name != "_" else ""
    enumerated = matchers.matches(loop.iter, matchers.Call(matchers.Name("enumerate")))
    return dotted(loop.target.elements[0].value) if isinstance(loop.target, cst.Tuple) and enumerated else ""


def _counts(iterated: cst.BaseExpression) -> bool:
    """`range(...)`, also inside a progress bar."""
    if not isinstance(iterated, cst.Call):
        return False
    if isinstance(iterated.func, cst.Name) and iterated.func.value in ("range", "trange"):
        return True
    return bool(iterated.args) and _counts(iterated.args[0].value)


def oom_guard(module: cst.Module) -> Iterator[Change]:
    """Decorate each function that has a training loop; put a loop at module level into a `with`.

    The error still ends the program, after its memory is freed and its cause is told: going on is a decision that
    a codemod cannot make. `retry="halve"` is one word more.
    """
    if calls_kit(module, "oom_guard"):
        return
    shape = read_shape(module)
    guard = cst.parse_expression(f"{kit_name(module)[0]}.oom_guard()")
    header = cst.With([cst.WithItem(guard)], cst.IndentedBlock([]))
    guarded = (
        place.scope if isinstance(place.scope, cst.FunctionDef) else (*place.around, place.loop)[0]
        for place in shape.steps
    )
    for node in {id(one): one for one in guarded}.values():  # each once, however many loops it has
        if not isinstance(node, cst.FunctionDef):
            yield Wrap((node,), header)
        elif _is_plain(node):
            # Innermost: `staticmethod`, `hydra.main` and the like must stay outside.
            yield Decorate(node, cst.Decorator(guard))


def _is_plain(function: cst.FunctionDef) -> bool:
    """Neither a coroutine nor a generator: their frames go on after the call has returned."""
    return function.asynchronous is None and not any(isinstance(n, cst.Yield) for n in walk(function.body))


def phase_cleanup(module: cst.Module) -> Iterator[Change]:
    """Put `memory.clear()` after validations and checkpoints of an epoch: once where both follow each other, and
    not where the cache is emptied there already."""
    shape = read_shape(module)
    name = kit_name(module)[0]
    for place in shape.epochs:
        if any(step.loop is place.loop for step in shape.steps):
            continue
        body = body_of(place.loop)
        validating = zip(body, validations(body, shape), strict=True)
        phases = [validates or saves_checkpoint(one, shape) for one, validates in validating]
        for index, statement in enumerate(body):
            if not phases[index] or _clears_soon(body[index + 1 :], name):
                continue
            if not _another_follows(body[index + 1 :], phases[index + 1 :], shape):
                yield _line(statement, f"{name}.clear()")


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

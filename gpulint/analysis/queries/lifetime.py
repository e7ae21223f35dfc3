"""How long what a name, an attribute or a container holds is there: whether steps run while it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, methods_naming
from gpulint.analysis.queries.effects import uses_since_made
from gpulint.analysis.queries.steps import Steps
from gpulint.analysis.queries.stores.emptied import begins_object, from_outside
from gpulint.analysis.syntax.flow import Definition
from gpulint.analysis.syntax.nodes import arguments, called_on, last_name


def step_while_bound(
    steps: Steps, evaluator: Evaluator, definition: Definition, frame: Frame, networks: list[Value]
) -> Any:
    """A call that runs steps, or an evaluation, while a name stands for a definition, be it of these networks by what is not seen; None where
    none is seen."""
    flow = frame.flow
    for event in steps.of(frame.function):
        if not event.loops and not event.within:
            continue
        outermost = event.loops[-1] if event.loops else event.node
        statement = flow.statement_of(outermost)
        bound = flow.loops(definition.statement) if definition.statement in flow.blocks else ()
        shared = set(event.loops).intersection(bound)
        if shared:  # one round of an outer loop: the loops within it are below
            inner = [one for one in event.loops if one not in shared]
            if not inner and not event.within:
                continue
            statement = flow.statement_of(inner[-1] if inner else event.node)
        if definition.kind == "parameter" or flow.holds_at(definition, statement):
            return event.node
    unseen = (one for one in flow.every_call if flow.holds_at(definition, flow.statement_of(one)))
    return next((one for one in unseen if _may_run_steps(steps, evaluator, one, frame, networks)), None)


def _may_run_steps(
    steps: Steps, evaluator: Evaluator, call: ast.Call, frame: Frame, networks: list[Value]
) -> bool:
    """Whether a call is of what is not seen, and runs steps: it is given a function that does, a network with a loader, or with an optimizer in
    a loop, or trains by its library."""
    func = evaluator.value_of(call.func, frame)
    if func.kind != "unknown" and (func.kind != "library" or "." not in str(func.ref)):
        return False
    given = [evaluator.value_of(one, frame) for one in arguments(call)]
    own = [one for one in given if one.kind == "module"]
    kinds = {one.kind for one in given}
    looped = bool(own) and ("loader" in kinds or ("optimizer" in kinds and bool(frame.flow.loops(call))))
    if looped or any(one.function is not None and steps.of(one.function) for one in given):
        return True
    base = evaluator.value_of(called_on(call) or call.func, frame)
    fits = last_name(call.func) == "fit" and base.kind in ("object", "unknown", "library")
    return fits and any(one.origins & network.origins for one in own for network in networks)


def is_last_of_module(definition: Definition, frame: Frame) -> bool:
    """Whether a name of a module stands for a definition until the program ends: nothing binds it anew after that, or deletes it."""
    order, last = frame.flow.order, frame.flow.order.get(definition.statement, -1)
    anew = frame.flow.bound_anew(definition.key)
    return frame.function.is_module and all(order[one.statement] <= last for one in anew)


def lets_go(evaluator: Evaluator, cls: Class, name: str, definition: Definition) -> Any:
    """What a class does that lets go of what an attribute was given: it is bound to something else afterwards, or deleted."""
    for method, key in methods_naming(evaluator.program.lineage(cls), name):
        flow = method.flow
        for other in flow.definitions.get(key, ()):
            if other is definition or (other.kind == "assign" and isinstance(other.value, ast.Call)):
                continue
            own = definition.statement in flow.blocks
            later = own and flow.order[other.statement] > flow.order[definition.statement]
            if later or (not own and method.name != "__init__"):
                return other.node
    return None


def emptied(
    evaluator: Evaluator, container: Any, frame: Frame, lasts: bool = False
) -> Iterator[tuple[Any, Frame, bool]]:
    """The places that empty what an expression stands for, make it anew, or bound it, and whether that is what they do. What `lasts` is
    not made anew by the function itself."""
    cls = evaluator.value_of(container.value, frame).ref if isinstance(container, ast.Attribute) else None
    if isinstance(cls, Class):
        yield from ((*one, False) for one in from_outside(evaluator, cls, container.attr))
    made = evaluator.value_of(container, frame).origins
    for node, where in made:
        if where is None or not isinstance(node, ast.AST):
            continue
        begins = isinstance(node, ast.arg) or isinstance(where.function.node, (ast.Module, ast.ClassDef))
        begins = begins or begins_object(evaluator, where.function)
        given = [(one.key, one.statement) for one in where.flow.given.get(node, ())]
        begins = begins or any(where.flow.is_first(*one) for one in given)
        anew = lasts or where.function is frame.function or len(made) > 1
        if where.flow.loops(node) or (anew and not begins):
            yield node, where, False
        for use in uses_since_made(evaluator, (node, where)):
            counts = use.name == "len" and isinstance(use.frame.flow.parents.get(use.node), ast.Compare)
            above = use.frame.flow.parents.get(use.node) if use.name == "item" else None  # `d[k].pop()`
            row = use.row or evaluator.table.own("dict", getattr(above, "attr", use.name))
            whole = use.role == "set" and isinstance(getattr(use.node, "slice", None), ast.Slice)
            takes = row is not None and row.does in ("clears", "takes out")
            if counts or whole or takes or use.role == "deleted":
                yield use.node, use.frame, counts

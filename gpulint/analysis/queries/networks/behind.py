"""The forwards that an expression is made of, whether or not gradients flow back to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from gpulint.analysis.domain.values import Value, in_text_order
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, given_for, outwards
from gpulint.analysis.evaluate.names import CALLERS_ASKED
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.networks.forwards import Forward, forward_of
from gpulint.analysis.syntax.flow import ENTRY, Definition, Flow
from gpulint.analysis.syntax.nodes import called_on, last_name

_MOST: Final = 400  # expressions that one is made of
_NAMES: Final = (ast.Name, ast.Attribute, ast.Subscript)
_HAVE_SOURCES: Final = (*_NAMES, ast.Call)


def behind(evaluator: Evaluator, node: Any, frame: Frame) -> list[Forward]:
    """The forwards in an expression, in what its names stand for, and in what functions of the project give back."""
    calls = (one for one in made_of(evaluator, node, frame) if isinstance(one[0], ast.Call))
    found = (forward_of(evaluator, call, where) for call, where in calls)
    return [one for one in found if one is not None]


def made_of(
    evaluator: Evaluator, node: Any, frame: Frame, numbers: bool = True
) -> Iterator[tuple[Any, Frame]]:
    """The expressions in one, each with its frame, and those in what its names are bound to and its calls give back: also of sizes, as long as
    `numbers` matter, and of no device."""
    queue, seen, followed = [(node, frame)], {(node, frame)}, 0
    for one, where in queue:  # grows while it is gone through
        yield one, where
        if isinstance(one, ast.Attribute) and evaluator.value_of(one, where).kind == "device":
            continue
        inside = (inner for inner in ast.iter_child_nodes(one) if not isinstance(inner, ast.expr_context))
        further = [(inner, where) for inner in inside]
        goes_on = isinstance(one, _HAVE_SOURCES) and followed < _MOST
        if goes_on and (numbers or evaluator.value_of(one, where).kind != "number"):
            own = list(sources(evaluator, one, where))
            followed += len(own)
            further += own
        queue += [each for each in further if each not in seen]
        seen.update(further)


def sources(evaluator: Evaluator, node: Any, frame: Frame) -> Iterator[tuple[Any, Frame]]:
    """What a name is bound to, and what a call of a function of the project gives back."""
    if isinstance(node, _NAMES):
        for one in frame.flow.reaching(node) if node in frame.flow.parents else ():
            if one.kind == "parameter":
                calls = outwards(evaluator, frame)[:CALLERS_ASKED]
                several = ((given_for(frame.function, one.key, call), where) for call, where in calls)
                yield from (given for given in several if given[0] is not None)
            elif one.kind in ("assign", "loop", "augmented"):
                source, _ = source_of(one, frame.flow)
                yield from ((source, frame),) if source is not None else ()
            elif one is ENTRY and isinstance(node, ast.Attribute):
                yield from _set_by_methods(evaluator, node, frame)
    elif isinstance(node, ast.Call) and forward_of(evaluator, node, frame) is None:
        held = called_on(node, "items", "values", "get", "pop")
        if held is not None:
            yield from put_into(evaluator, evaluator.value_of(held, frame))
        target = evaluator.value_of(node.func, frame)
        inner = evaluator.enter(target.function, node, frame, target.receiver) if target.function else None
        if inner is not None:
            given_back = (*inner.flow.returns, *inner.flow.yields)
            yield from ((one.value, inner) for one in given_back if one.value is not None)


def put_into(evaluator: Evaluator, value: Value) -> Iterator[tuple[Any, Frame]]:
    """What is put into a list or a dict, one by one, beside what it is displayed with."""
    made = in_text_order(value.origins) if value.kind in ("list", "dict") else ()
    keys = (
        (key, at) for node, where in made if where for key, at in evaluator.containers.keys_of(node, where)
    )
    for key, where in keys:
        calls = where.flow.calls_on((key,), "append", "insert")
        yield from ((one.args[-1], where) for one in calls if one.args)
        yield from ((one.value, where) for one in where.flow.stored.get(key, ()) if not one.path)


def _set_by_methods(evaluator: Evaluator, node: ast.Attribute, frame: Frame) -> Iterator[tuple[Any, Frame]]:
    """What the methods of an object's class give to an attribute that is a tensor."""
    cls = evaluator.value_of(node.value, frame).ref
    if isinstance(cls, Class) and evaluator.value_of(node, frame).kind == "tensor":
        fields = evaluator.fields(cls, node.attr)
        yield from ((one.value, evaluator.root(method)) for method, one in fields if one.kind == "assign")


def source_of(definition: Definition, flow: Flow) -> tuple[Any, tuple[Any, ...]]:
    """The expression that a definition gives its key, or a part of, and the path to that: of several that a loop runs through side by
    side, its own; None for a count."""
    value, path = definition.value, definition.path
    while definition.kind == "loop" and isinstance(whole := flow.unaliased(value), ast.Call):
        name = last_name(whole.func)
        own: Any = path[0] if name == "zip" and path else 0
        if name not in ("zip", "enumerate") or own not in range(len(whole.args)):
            break
        if name == "enumerate" and path[:1] == (0,):
            return None, ()
        value, path = whole.args[own], path[1:]
    while definition.kind == "assign" and path and isinstance(value, ast.Tuple):  # `a, b = f(a), f(b)`
        own = path[0]
        if own not in range(len(value.elts)) or any(isinstance(one, ast.Starred) for one in value.elts):
            break
        value, path = value.elts[own], path[1:]
    return value, path


def rounds(evaluator: Evaluator, node: Any, frame: Frame) -> list[Any]:
    """What runs a node for one thing after the other: the loops around it, and the lambdas that are called for each of several."""
    above = frame.flow.ancestors(node)
    lambdas = [one for one in above if isinstance(one, ast.Lambda) and gone_through(evaluator, one, frame)]
    return [*lambdas, *frame.flow.loops(node)]


def gone_through(evaluator: Evaluator, loop: Any, frame: Frame) -> list[Any]:
    """What a loop, a comprehension, or whoever calls a lambda for each, runs through: `map(lambda x: …, xs)`, `xs.sort(key=lambda x: …)`."""
    if not isinstance(loop, ast.Lambda):
        return [one.iter for one in getattr(loop, "generators", (loop,)) if hasattr(one, "iter")]
    above = frame.flow.parents[loop]
    if isinstance(above, ast.keyword) and above.arg == "key":
        call = frame.flow.parents[above]
        return call.args or [getattr(call.func, "value", None)]
    row = evaluator.row_of(above, frame) if isinstance(above, ast.Call) else None
    return above.args[1:] if row is not None and row.gives in ("mapped", "filtered") else []

"""Whether an expression is shown to give a tensor, and one of a single number: by what makes it, or by what is asked of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final

from gpulint.analysis.domain.values import Graph
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.syntax.flow import ENTRY, Definition, Flow
from gpulint.analysis.syntax.nodes import key_of, keyword, last_name

_DEEPEST: Final = 12
_MOVING: Final = frozenset("to cpu cuda float half double bfloat16 clone contiguous requires_grad_ detach".split())
_REDUCING: Final = frozenset({"mean", "sum"})
_BACKWARD: Final = frozenset({"backward", "manual_backward"})


class Shown(IntEnum):
    """`SCALAR` is a tensor with one element."""

    NOTHING = 0
    TENSOR = 1
    SCALAR = 2


def shown(
    evaluator: Evaluator, node: Any, frame: Frame, path: tuple[Any, ...] = (), depth: int = _DEEPEST
) -> Shown:
    """What is shown of what an expression gives, or of a part of it."""
    if not depth:
        return Shown.NOTHING
    made = _made(evaluator, node, frame, path, depth - 1)
    asked = _asked(evaluator, node, frame) if not path and made is not Shown.SCALAR else made
    return max(made, asked)


# -- by what makes it


def _made(evaluator: Evaluator, node: Any, frame: Frame, path: tuple[Any, ...], depth: int) -> Shown:
    if isinstance(node, (ast.Tuple, ast.List)) and path and isinstance(path[0], int):
        inside = not any(isinstance(one, ast.Starred) for one in node.elts) and path[0] < len(node.elts)
        return (
            shown(evaluator, node.elts[path[0]], frame, path[1:], depth) if inside else Shown.NOTHING
        )
    if isinstance(node, ast.Dict) and path:
        found = [
            value
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and key.value == path[0]
        ]
        return shown(evaluator, found[-1], frame, path[1:], depth) if found else Shown.NOTHING
    if isinstance(node, ast.Call):
        return _called(evaluator, node, frame, path, depth)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and _is_defined(node, frame):
        return _least(
            _defined(evaluator, one, frame, path, depth)
            for one in frame.flow.reaching(node)
            if one.kind != "delete"
        )
    if isinstance(node, ast.Subscript):
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        part = _made(evaluator, node.value, frame, (index, *path), depth) if index is not None else 0
        if part or isinstance(index, str) or path:
            return Shown(part)
        return min(shown(evaluator, node.value, frame, (), depth), Shown.TENSOR)
    if path:
        return Shown.NOTHING
    if isinstance(node, ast.Attribute):
        row = evaluator.table.own("tensor.attributes", node.attr)
        is_part = row is not None and row.gives == "tensor"
        return shown(evaluator, node.value, frame, (), depth) if is_part else Shown.NOTHING
    if isinstance(node, ast.IfExp):
        return _least(shown(evaluator, one, frame, (), depth) for one in (node.body, node.orelse))
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return shown(evaluator, node.operand, frame, (), depth)
    if isinstance(node, ast.BinOp):
        return _computed(evaluator, node, frame, depth)
    return Shown.NOTHING


def _computed(evaluator: Evaluator, node: ast.BinOp, frame: Frame, depth: int) -> Shown:
    """A tensor and a number give a tensor, and so do two; of what is not seen nobody knows the size."""
    least = Shown.SCALAR
    found = [shown(evaluator, one, frame, (), depth) for one in (node.left, node.right)]
    for one, what in zip((node.left, node.right), found, strict=True):
        if what is Shown.NOTHING and evaluator.value_of(one, frame).kind != "number":
            least = Shown.TENSOR
    return min(max(found), least, *(one for one in found if one))


def _called(evaluator: Evaluator, node: ast.Call, frame: Frame, path: tuple[Any, ...], depth: int) -> Shown:
    func = node.func
    if isinstance(func, ast.Attribute):
        base = evaluator.value_of(func.value, frame)
        row = evaluator.table.own("tensor", func.attr)
        if base.kind in ("tensor", "parameter", "unknown") and func.attr in _MOVING:
            return shown(evaluator, func.value, frame, path, depth) if not path else Shown.NOTHING
        if base.kind in ("tensor", "parameter") and row is not None and row.gives in ("tensor", "pair"):
            is_pair = row.gives == "pair" and evaluator.value_of(node, frame).kind == "tuple"
            return _sized(evaluator, node, frame) if bool(path) is is_pair else Shown.NOTHING
    target = evaluator.value_of(func, frame)
    if target.kind == "library" and isinstance(target.ref, str):
        row = evaluator.table.function(target.ref)
        is_torch = target.ref.startswith("torch.") and row is not None and row.gives == "tensor"
        return _sized(evaluator, node, frame) if is_torch and not path else Shown.NOTHING
    function, receiver = target.ref, target.receiver
    if target.kind in ("module", "object") and isinstance(target.ref, Class):
        name = "forward" if target.kind == "module" else "__call__"
        function, receiver = evaluator.method(target.ref, name), target
    if isinstance(function, Function):
        inner = evaluator.enter(function, node, frame, receiver)
        return _returned(evaluator, inner, path, depth) if inner is not None else Shown.NOTHING
    made = evaluator.calling.made_by(target) if target.kind == "module" else None
    if made is not None and made.weights == "none" and not path:
        return _sized(evaluator, node, frame)  # a criterion of the library's
    return Shown.NOTHING


def _returned(evaluator: Evaluator, frame: Frame, path: tuple[Any, ...], depth: int) -> Shown:
    flow = frame.flow
    found = [one for one in flow.returns if not evaluator.is_dead(one, frame)]
    if flow.falls_through or flow.yields or any(one.value is None for one in found):
        return Shown.NOTHING
    return _least(shown(evaluator, one.value, frame, path, depth) for one in found)


def _sized(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Shown:
    return Shown.SCALAR if evaluator.value_of(node, frame).size == "scalar" else Shown.TENSOR


def _is_defined(node: Any, frame: Frame) -> bool:
    flow = frame.flow
    return node in flow.parents and key_of(node) is not None and ENTRY not in flow.reaching(node)


def _defined(
    evaluator: Evaluator, one: Definition, frame: Frame, path: tuple[Any, ...], depth: int
) -> Shown:
    """What a definition gives its key."""
    if one.kind == "assign":
        return shown(evaluator, one.value, frame, (*one.path, *path), depth)
    if one.kind == "inplace" and not path:
        return shown(evaluator, one.node, frame, (), depth)
    if one.kind == "augmented" and not path:
        return shown(evaluator, one.value, frame, (), depth)
    if one.kind == "parameter":
        given = (frame.given or {}).get(one.key)
        if isinstance(given, tuple) and isinstance(given[0], ast.AST):
            return shown(evaluator, given[0], given[1], path, depth)
        annotation = getattr(one.node, "annotation", None)
        if not path and annotation is not None and last_name(annotation) == "Tensor":
            return Shown.TENSOR
    return Shown.NOTHING


def _least(found: Iterator[Shown]) -> Shown:
    return min(found, default=Shown.NOTHING)


# -- by what is asked of it


def _asked(evaluator: Evaluator, node: Any, frame: Frame) -> Shown:
    """What the other uses of the same thing show: a backward begins with it, or it is made a number."""
    flow, key = frame.flow, key_of(node)
    if key is None or node not in flow.parents:
        return Shown.NOTHING
    found = (
        _used(evaluator, one, frame, 3)
        for one in flow.uses.get(key, ())
        if one is not node and is_same(flow, one, node) and not _is_tested(flow, one, key)
    )
    return max(found, default=Shown.NOTHING)


def is_same(flow: Flow, one: Any, other: Any) -> bool:
    """Whether two uses of a key are of the same thing, as far as the function's own statements go."""
    while True:
        if set(flow.reaching(one)) != set(flow.reaching(other)):
            return False
        if isinstance(one, ast.Name) or not isinstance(one, (ast.Attribute, ast.Subscript)):
            return True
        one, other = one.value, other.value


def _is_tested(flow: Flow, node: Any, key: str) -> bool:
    """Whether a use runs only where a test of the very thing holds: `if torch.is_tensor(loss)`."""
    return any(key_of(one) == key for test, _ in flow.conditions(node) for one in ast.walk(test))


def _used(evaluator: Evaluator, node: Any, frame: Frame, depth: int) -> Shown:
    """What a use shows of the thing, upwards from it."""
    flow, most = frame.flow, Shown.SCALAR
    while depth:
        above = flow.parents.get(node)
        outer = flow.parents.get(above) if isinstance(above, ast.Attribute) else None
        if isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.USub):
            node = above
        elif isinstance(above, ast.BinOp):
            other = above.right if node is above.left else above.left
            if evaluator.value_of(other, frame).graph is not Graph.NONE:
                return Shown.NOTHING  # what has the backward may be the other
            node = above
        elif isinstance(above, ast.Attribute) and isinstance(outer, ast.Call) and outer.func is above:
            if above.attr in ("item", "backward"):
                given = outer.args or keyword(outer, "gradient")
                return most if not given else Shown.TENSOR
            if above.attr in _REDUCING and not outer.args and not outer.keywords:
                most = Shown.TENSOR
            elif above.attr not in _MOVING:
                return Shown.NOTHING
            node = outer
        elif isinstance(above, ast.Call) and node in above.args[:1] and isinstance(above.func, ast.Attribute):
            if above.func.attr in _BACKWARD:
                base = evaluator.value_of(above.func.value, frame)
                return most if base.kind not in ("tensor", "parameter") else Shown.NOTHING
            if above.func.attr != "scale":
                return Shown.NOTHING
            node = above
        elif isinstance(above, ast.Assign) and len(flow.given.get(node, ())) == 1:
            uses = flow.uses_of(flow.given[node][0])
            return min(
                most,
                max((_used(evaluator, one, frame, depth - 1) for one in uses), default=Shown.NOTHING),
            )
        else:
            break
    return Shown.NOTHING

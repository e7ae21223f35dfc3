"""Whether an expression is shown to give a tensor, and one of a single number: by what makes it, or by what is asked of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final

from gpulint.analysis.domain.values import Graph, Value
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.models.table import Row
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.syntax.flow import ENTRY, Definition, Flow
from gpulint.analysis.syntax.nodes import key_of, keyword, last_name

_DEEPEST: Final = 12
_MOVING: Final = frozenset(
    "to cpu cuda float half double bfloat16 clone contiguous requires_grad_ detach".split()
)
_REDUCING: Final = frozenset({"mean", "sum"})
_KINDS_OF_TESTS: Final = frozenset("isinstance is_tensor hasattr type callable".split())
_DECORATORS: Final = frozenset(
    "staticmethod classmethod property override no_grad inference_mode enable_grad autocast abstractmethod".split()
)
_LIST_TAKING: Final = frozenset("cat stack vstack hstack concat concatenate block_diag save".split())
_LAYERS: Final = frozenset(
    "Linear Bilinear Embedding LayerNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d "
    "ConvTranspose2d ConvTranspose3d ReLU GELU SiLU Sigmoid Tanh Softmax Dropout Flatten".split()
)
ANY: Final = "*"
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
    if not path and evaluator.value_of(node, frame).kind == "parameter":
        return Shown.TENSOR
    made = _made(evaluator, node, frame, path, depth - 1)
    asked = _asked(evaluator, node, frame) if not path and made is not Shown.SCALAR else made
    return max(made, asked)


# -- by what makes it


def _made(evaluator: Evaluator, node: Any, frame: Frame, path: tuple[Any, ...], depth: int) -> Shown:
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict)) and path:
        return _least(shown(evaluator, one, frame, path[1:], depth) for one in _parts(node, path[0]))
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


def _parts(node: Any, index: Any) -> list[Any]:
    """The entries of a display at an index, or at any."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        keys = [(getattr(key, "value", None), value) for key, value in pairs]
        return [value for key, value in keys if index in (ANY, key)]
    if any(isinstance(one, ast.Starred) for one in node.elts):
        return []
    if index == ANY:
        return list(node.elts)
    return [node.elts[index]] if isinstance(index, int) and index < len(node.elts) else []


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
        if base.kind in ("tensor", "parameter", "unknown") and func.attr in _MOVING:
            return shown(evaluator, func.value, frame, path, depth) if not path else Shown.NOTHING
        row = evaluator.table.own("tensor", func.attr)
        if row is None and base.kind == "tensor" and shown(evaluator, func.value, frame, (), depth):
            row = evaluator.table.method("tensor", func.attr)
        has_graph = base.kind in ("tensor", "parameter") or (base.kind == "unknown" and base.graph)
        if has_graph and row is not None and row.gives in ("tensor", "pair"):
            is_pair = row.gives == "pair" and evaluator.value_of(node, frame).kind == "tuple"
            return _sized(evaluator, row, node, frame) if bool(path) is is_pair else Shown.NOTHING
    target = evaluator.value_of(func, frame)
    if target.kind == "library" and isinstance(target.ref, str):
        row = evaluator.table.function(target.ref)
        is_torch = target.ref.startswith("torch.") and row is not None and row.gives == "tensor"
        return _sized(evaluator, row, node, frame) if is_torch and row and not path else Shown.NOTHING
    function, receiver = target.ref, target.receiver
    if target.kind in ("module", "object") and isinstance(target.ref, Class):
        name = "forward" if target.kind == "module" else "__call__"
        function, receiver = evaluator.method(target.ref, name), target
    if _is_handed(func, frame) and not evaluator.callers(frame.function):
        return Shown.NOTHING  # it is no more than what the parameter is by default
    if isinstance(function, Function):
        found = _of_function(evaluator, function, node, frame, receiver, path, depth)
        return min(found, Shown.TENSOR) if _is_handed(func, frame) else found
    made = evaluator.calling.made_by(target) if target.kind == "module" else None
    if made is not None and made.weights == "none" and not path:
        return _sized(evaluator, made, node, frame)  # a criterion of the library's
    if _is_layer(evaluator, target) and not path:
        return Shown.TENSOR
    return Shown.NOTHING


def _of_function(
    evaluator: Evaluator,
    function: Function,
    call: ast.Call,
    frame: Frame,
    receiver: Value | None,
    path: tuple[Any, ...],
    depth: int,
) -> Shown:
    """What a function of the project gives, and those that take its place in classes that derive from its own."""
    inner = evaluator.enter(function, call, frame, receiver)
    below = evaluator.program.subclasses(function.cls) if function.cls is not None else ()
    several = [one.methods[function.name] for one in below if function.name in one.methods]
    if inner is None or not all(one.decorators <= _DECORATORS for one in (function, *several)):
        return Shown.NOTHING  # who decorates it may make something else of what it returns
    frames = [inner, *(evaluator.root(one) for one in several if one is not function)]
    return _least(_returned(evaluator, one, path, depth) for one in frames)


def _returned(evaluator: Evaluator, frame: Frame, path: tuple[Any, ...], depth: int) -> Shown:
    flow = frame.flow
    found = [one for one in flow.returns if not evaluator.is_dead(one, frame)]
    if flow.falls_through or flow.yields or any(one.value is None for one in found):
        return Shown.NOTHING
    return _least(shown(evaluator, one.value, frame, path, depth) for one in found)


def _is_layer(evaluator: Evaluator, target: Value) -> bool:
    """Whether all that a network may be is one of torch's layers which give one tensor."""
    return bool(target.origins) and all(
        isinstance(node, ast.Call)
        and frame is not None
        and str(evaluator.value_of(node.func, frame).ref).startswith("torch.nn.")
        and last_name(node.func) in _LAYERS
        for node, frame in target.origins
    )


def _is_handed(func: Any, frame: Frame) -> bool:
    """Whether what is called is given to the function: others may give it something else."""
    return isinstance(func, ast.Name) and any(one.kind == "parameter" for one in frame.flow.reaching(func))


def _sized(evaluator: Evaluator, row: Row, node: ast.Call, frame: Frame) -> Shown:
    """Of what an operation gives: it is one number where that is what the operation makes."""
    given = any(keyword(node, name) is not None for name in ("dim", "axis", "keepdim"))
    several = len(node.args) > (0 if evaluator.value_of(node.func, frame).kind != "library" else 1)
    whole = row.size == "loss" or not (given or several)
    reduces = row.size in ("scalar", "loss") and whole and evaluator.value_of(node, frame).size == "scalar"
    return Shown.SCALAR if reduces else Shown.TENSOR


def _is_defined(node: Any, frame: Frame) -> bool:
    flow = frame.flow
    return node in flow.parents and key_of(node) is not None and ENTRY not in flow.reaching(node)


def _defined(evaluator: Evaluator, one: Definition, frame: Frame, path: tuple[Any, ...], depth: int) -> Shown:
    """What a definition gives its key."""
    if one.kind == "assign":
        return shown(evaluator, one.value, frame, (*one.path, *path), depth)
    if one.kind == "inplace" and not path:
        return shown(evaluator, one.node, frame, (), depth)
    if one.kind == "augmented" and not path:
        before, more = (shown(evaluator, each, frame, (), depth) for each in (one.node, one.value))
        if evaluator.value_of(one.value, frame).kind == "number":
            return before
        return min(before, more) if before and more else min(max(before, more), Shown.TENSOR)
    if one.kind == "loop":
        return _gone_through(evaluator, one.value, frame, (*one.path, *path), depth)
    if one.kind == "parameter":
        given = (frame.given or {}).get(one.key)
        if isinstance(given, tuple) and isinstance(given[0], ast.AST):
            return shown(evaluator, given[0], given[1], path, depth)
        annotation = getattr(one.node, "annotation", None)
        if not path and annotation is not None and last_name(annotation) == "Tensor":
            return Shown.TENSOR
    return Shown.NOTHING


def _gone_through(evaluator: Evaluator, node: Any, frame: Frame, path: tuple[Any, ...], depth: int) -> Shown:
    """What a loop gives its target in each round."""
    name = last_name(node.func) if isinstance(node, ast.Call) else ""
    if name in ("items", "values") and isinstance(node.func, ast.Attribute) and not node.args:
        if name == "items" and path[:1] != (1,):
            return Shown.NOTHING
        return shown(evaluator, node.func.value, frame, (ANY, *path[1 if name == "items" else 0 :]), depth)
    if name == "enumerate" and path[:1] == (1,):
        return shown(evaluator, node.args[0], frame, (ANY, *path[1:]), depth) if node.args else Shown.NOTHING
    if name == "zip" and path and isinstance(path[0], int) and path[0] < len(node.args):
        return shown(evaluator, node.args[path[0]], frame, (ANY, *path[1:]), depth)
    return shown(evaluator, node, frame, (ANY, *path), depth) if not name else Shown.NOTHING


def _least(found: Iterator[Shown]) -> Shown:
    return min(found, default=Shown.NOTHING)


# -- by what is asked of it


def _asked(evaluator: Evaluator, node: Any, frame: Frame) -> Shown:
    """What the other uses of the same thing show: a backward begins with it, or it is made a number."""
    flow = frame.flow
    if node not in flow.parents or not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return Shown.NOTHING
    key = key_of(node)
    several = (
        flow.uses.get(key, ())
        if key is not None
        else [one for one in flow.parents if type(one) is type(node)]
    )
    found = (
        _used(evaluator, one, frame, 3)
        for one in several
        if one is not node and is_same(flow, one, node) and not _is_tested(flow, one, node)
    )
    return max(found, default=Shown.NOTHING)


def is_same(flow: Flow, one: Any, other: Any) -> bool:
    """Whether two expressions that are spelled alike are of the same thing, as far as the function's own statements go."""
    if ast.dump(one) != ast.dump(other):
        return False
    pairs = zip(ast.walk(one), ast.walk(other), strict=True)
    return all(
        set(flow.reaching(first)) == set(flow.reaching(second))
        for first, second in pairs
        if first in flow.parents
    )


def _is_tested(flow: Flow, use: Any, node: Any) -> bool:
    """Whether a use runs only where the very thing is asked what it is: `if torch.is_tensor(loss)`."""
    spelled = ast.dump(node)
    return any(
        isinstance(call, ast.Call)
        and last_name(call.func) in _KINDS_OF_TESTS
        and any(ast.dump(one) == spelled for one in call.args)
        for test, _ in flow.conditions(use)
        for call in ast.walk(test)
    )


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
                return most if not (outer.args or keyword(outer, "gradient")) else Shown.TENSOR
            if above.attr not in _REDUCING | _MOVING:
                return Shown.TENSOR if _is_of_tensors(evaluator, above.attr) else Shown.NOTHING
            most = most if above.attr in _MOVING else Shown.TENSOR
            node = outer
        elif isinstance(above, ast.Call) and node in above.args:
            if not (
                isinstance(above.func, ast.Attribute) and above.func.attr == "scale" and node is above.args[0]
            ):
                return min(most, _given(evaluator, node, above, frame))
            node = above
        elif isinstance(above, ast.Assign) and len(flow.given.get(node, ())) == 1:
            made = flow.given[node][0]
            uses = [one for one in flow.uses_of(made) if set(flow.reaching(one)) == {made}]
            found = (_used(evaluator, one, frame, depth - 1) for one in uses)
            return min(most, max(found, default=Shown.NOTHING))
        else:
            break
    return Shown.NOTHING


def _is_of_tensors(evaluator: Evaluator, name: str) -> bool:
    """Whether only tensors have a method of a name."""
    others = ("dict", "list", "module", "text", "state", "set")
    known = evaluator.table.own("tensor", name)
    return known is not None and not any(evaluator.table.own(kind, name) for kind in others)


def _given(evaluator: Evaluator, node: Any, call: ast.Call, frame: Frame) -> Shown:
    """What it shows of something that a call is given it: to go backward from, or to compute with."""
    func, first = call.func, node is call.args[0]
    target = evaluator.value_of(func, frame)
    if first and isinstance(func, ast.Attribute) and func.attr in _BACKWARD:
        base = evaluator.value_of(func.value, frame)
        others = base.kind in ("tensor", "parameter", "library") or target.kind == "function"
        return Shown.NOTHING if others else Shown.SCALAR
    if target.kind == "library" and isinstance(target.ref, str) and target.ref.startswith("torch."):
        row = evaluator.table.function(target.ref)
        computes = row is not None and row.gives == "tensor" and last_name(func) not in _LIST_TAKING
        return Shown.TENSOR if computes and first else Shown.NOTHING
    made = evaluator.calling.made_by(target) if target.kind == "module" else None
    if made is not None and made.weights == "none" and made.size == "loss":
        return Shown.TENSOR
    steps = any(
        evaluator.value_of(one, frame).kind == "optimizer"
        for one in call.args
        if not isinstance(one, ast.Starred)
    )
    return Shown.TENSOR if steps and first and target.kind == "unknown" else Shown.NOTHING

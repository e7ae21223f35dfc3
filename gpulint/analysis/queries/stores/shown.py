"""Whether an expression is shown to give a tensor, and one of a single number: by what makes it, or by what is asked of it."""

from __future__ import annotations

import ast
from enum import IntEnum
from typing import Any, Final

from gpulint.analysis.domain.values import Graph
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.networks.runs import Run, entered, runs_of
from gpulint.analysis.queries.stores.on_device import is_of_output, operations
from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import called_on, key_of, keyword, last_name

_DEEPEST: Final = 3  # networks in networks
_MOVING: Final = frozenset(
    "to cpu cuda float half double bfloat16 clone contiguous requires_grad_ detach".split()
)
_REDUCING: Final = frozenset({"mean", "sum"})
_KINDS_OF_TESTS: Final = frozenset("isinstance is_tensor hasattr type callable".split())
_LIST_TAKING: Final = frozenset("cat stack vstack hstack concat concatenate block_diag save".split())
_BACKWARD: Final = frozenset({"backward", "manual_backward"})


class Shown(IntEnum):
    """`SCALAR` is a tensor with one element."""

    NOTHING = 0
    TENSOR = 1
    SCALAR = 2


def shown(evaluator: Evaluator, node: Any, frame: Frame) -> Shown:
    """What is shown of what an expression gives, whichever way it is made."""
    ways = list(evaluator.ways(node, frame))
    if all(one.kind == "parameter" for one in ways):
        return Shown.TENSOR
    made = Shown.NOTHING
    unseen = _is_by_others(evaluator, node, frame) or _is_of_unseen(evaluator, node, frame)
    if all(one.kind in ("tensor", "parameter") and not one.assumptions for one in ways) and not unseen:
        made = Shown.SCALAR if all(one.size == "scalar" for one in ways) else Shown.TENSOR
    return made if made is Shown.SCALAR else max(made, _asked(evaluator, node, frame))


def _is_by_others(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether a call is of a function that the caller gives, who may give another, or of Python's own, as of `sum`, which may add up nothing."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    given = any(one.kind == "parameter" for one in frame.flow.reaching(node.func))
    return given or evaluator.value_of(node.func, frame).full_name == node.func.id


def _is_of_unseen(evaluator: Evaluator, node: Any, frame: Frame, depth: int = _DEEPEST) -> bool:
    """Whether it is what a network out of sight gives, or a part of that: it may be of any type."""
    if not is_of_output(evaluator, node, frame):
        return False
    last, where = operations(evaluator, node, frame)[-1]
    return any(_gives_whatever(evaluator, run, depth) for run in runs_of(evaluator, last, where))


def _gives_whatever(evaluator: Evaluator, run: Run, depth: int) -> bool:
    made, inner = evaluator.calling.made_by(run.network), entered(evaluator, run)
    if inner is None or not depth:
        return made is None or made.weights not in ("rows", "pictures")  # which give one tensor
    given = [one.value for one in inner.flow.returns]
    return any(one is None or _is_of_unseen(evaluator, one, inner, depth - 1) for one in given)


# -- by what is asked of it


def _asked(evaluator: Evaluator, node: Any, frame: Frame) -> Shown:
    """What the other uses of the same thing show: a backward begins with it, or it is made a number."""
    flow = frame.flow
    if node not in flow.parents or not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return Shown.NOTHING
    key = key_of(node)
    several = flow.uses.get(key, ()) if key is not None else flow.of_kind(type(node))
    same = (one for one in several if one is not node and is_same(flow, one, node))
    found = (_used(evaluator, one, frame, 3) for one in same if not _is_tested(flow, one, node))
    return max(found, default=Shown.NOTHING)


def is_same(flow: Flow, one: Any, other: Any) -> bool:
    """Whether two expressions that are spelled alike are of the same thing, as far as the function's own statements go."""
    if ast.dump(one) != ast.dump(other):
        return False
    pairs = (pair for pair in zip(ast.walk(one), ast.walk(other), strict=True) if pair[0] in flow.parents)
    return all(set(flow.reaching(first)) == set(flow.reaching(second)) for first, second in pairs)


def _is_tested(flow: Flow, use: Any, node: Any) -> bool:
    """Whether a use runs only where the very thing is asked what it is: `if torch.is_tensor(loss)`."""
    parts = (part for test, _ in flow.conditions(use) for part in ast.walk(test))
    asks = (one for one in parts if isinstance(one, ast.Call) and last_name(one.func) in _KINDS_OF_TESTS)
    return any(ast.dump(one) == ast.dump(node) for call in asks for one in call.args)


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
            if called_on(above, "scale") is None or node is not above.args[0]:
                return min(most, _given(evaluator, node, above, frame))
            node = above
        elif isinstance(above, ast.Assign) and len(flow.given.get(node, ())) == 1:
            uses = [one for one in flow.named(node) if len(flow.reaching(one)) == 1]
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
    if target.full_name.startswith("torch."):
        row = evaluator.table.function(target.ref)
        computes = row is not None and row.gives == "tensor" and last_name(func) not in _LIST_TAKING
        return Shown.TENSOR if computes and first else Shown.NOTHING
    made = evaluator.calling.made_by(target) if target.kind == "module" else None
    if made is not None and made.weights == "none" and made.size == "loss":
        return Shown.TENSOR
    steps = any(evaluator.value_of(one, frame).kind == "optimizer" for one in call.args)
    return Shown.TENSOR if steps and first and target.kind == "unknown" else Shown.NOTHING

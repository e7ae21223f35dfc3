"""What a running average is, and how code spells an update of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.torch.names import REDUCTIONS

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Hold

_IN_PLACE = frozenset({"add_", "lerp_", "copy_"})


@dataclass(slots=True)
class Average:
    """`target = a * target + b * value` under grad, where `value` has a graph.

    `what` is "weights", "statistics" or "value". `leaves` are the expressions to detach, `starts` those from which other
    statements of the function start the average. `against` says in one clause why that may change what is trained.
    """

    function: ir.Function
    stmt: ir.Stmt
    target: ir.Expr
    leaves: tuple[ir.Expr, ...]
    what: str
    hold: Hold | None = None
    only_called_elsewhere: tuple[ir.Function, ...] = ()
    starts: tuple[ir.Expr, ...] = ()
    against: str = ""
    doubt: str = ""  # in a clause, why it may have no graph


def updates(statement: ir.Stmt) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """What a statement averages, and with what: `t = a * t + b * v`, `t.mul_(a).add_(v, alpha=b)`, `t.lerp_(v, b)`."""
    if isinstance(statement, ir.Assign) and statement.value is not None and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ir.Sub) and isinstance(target.index, ir.Slice):
            target = target.base  # `mean[:] = …` writes into the same tensor
        if isinstance(target, (ir.Attr, ir.Sub)) and is_average(target, value):
            yield target, value
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        call = statement.value
        if call.method not in _IN_PLACE or not isinstance(call.func, ir.Attr) or not call.args:
            return
        base = call.func.base
        scaled = isinstance(base, ir.Call) and base.method == "mul_" and isinstance(base.func, ir.Attr)
        if scaled and call.method == "add_":
            yield base.func.base, call.args[0]  # type: ignore[attr-defined]
        elif (
            (call.method == "lerp_" and base.path is not None)
            or (call.method == "copy_" and base.path is not None and is_average(base, call.args[0]))
            or (call.method == "add_" and base.path is not None and _is_step_towards(base, call.args[0]))
        ):
            yield base, call.args[0]
    elif isinstance(statement, ir.AugAssign) and statement.op == "+":
        if isinstance(statement.target, ir.Attr) and _is_step_towards(statement.target, statement.value):
            yield statement.target, statement.value


def is_average(target: ir.Expr, value: ir.Expr) -> bool:
    """Whether the value is a sum of products, one of which scales the target: a mean that decays."""
    if isinstance(value, ir.Call) and value.method == "lerp" and value.args:
        base = value.func.base if isinstance(value.func, ir.Attr) else None
        return same(value.args[0], target) or (base is not None and same(base, target))
    if not isinstance(value, ir.Op) or value.op != "+":
        return False
    left, right = value.operands
    if (same(left, target) and _is_step_towards(target, right)) or (
        same(right, target) and _is_step_towards(target, left)
    ):
        return True
    return any(
        _is_product(own) and _contains(own, target) and _is_product(other) and not _contains(other, target)
        for own, other in ((left, right), (right, left))
    )


def _is_step_towards(target: ir.Expr, value: ir.Expr) -> bool:
    """`rate * (x - target)`, with or without the rate."""
    factors = value.operands if _is_product(value) else (value,)  # type: ignore[attr-defined]
    return any(
        isinstance(part, ir.Op) and part.op == "-" and same(part.operands[1], target) for part in factors
    )


def _is_product(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Op) and expr.op == "*"


def _contains(expr: ir.Expr, target: ir.Expr) -> bool:
    return any(same(part, target) for part in ir.walk(expr))


def same(a: ir.Expr, b: ir.Expr) -> bool:
    """Whether two expressions are the same code, places and constants alone."""
    if a.path is not None or b.path is not None:
        return a.path == b.path
    if isinstance(a, ir.Sub) and isinstance(b, ir.Sub):
        return same(a.base, b.base) and same(a.index, b.index)
    return isinstance(a, ir.Const) and isinstance(b, ir.Const) and a.value == b.value


def summands(value: ir.Expr) -> list[ir.Expr]:
    """The operands of sums and products."""
    found: list[ir.Expr] = []
    stack = [value]
    if isinstance(value, ir.Call) and value.method == "lerp":
        stack = [*value.args[:2], *(value.func.children() if value.func.path is None else ())]
        if isinstance(value.func, ir.Attr) and value.func.path not in ("torch.lerp",):
            stack.append(value.func.base)
    while stack:
        expr = stack.pop()
        if isinstance(expr, ir.Op) and expr.op in ("+", "-", "*", "/"):
            stack += expr.operands
        else:
            found.append(expr)
    return found


def reduces(expr: ir.Expr) -> bool:
    """Whether a batch is brought down to a statistic: a mean, or a product that sums over the batch."""
    return any(
        (isinstance(part, ir.Call) and part.method in _REDUCING)
        or (isinstance(part, ir.Op) and part.op == "@")
        for part in ir.walk(expr)
    )


_REDUCING = REDUCTIONS | {"matmul", "mm", "einsum"}

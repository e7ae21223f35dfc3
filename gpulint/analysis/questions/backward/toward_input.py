"""Whether a module's forward is there to train what has made its input: then that has a graph."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.questions.backward.cutting import cuts_graph
from gpulint.analysis.torch.names import is_loss_function

_SHAPES = frozenset("view reshape permute transpose flatten contiguous squeeze unsqueeze float".split())


def trains_its_input(function: ir.Function, name: str) -> bool:
    """Whether a function sets its parameter against something detached, in a loss or straight through a step without gradient:
    `mse_loss(z, q.detach())`, `(q.detach() - z) ** 2`, `z + (q - z).detach()`. Nothing but the input could be trained by that."""
    return any(
        _is_loss_of(part, name) or _is_square_of(part, name) or _is_straight_through(part, name)
        for statement in ir.statements(function.body)
        for part in ir.own_parts(statement)
    )


def _is_loss_of(expr: ir.Expr, name: str) -> bool:
    return (
        isinstance(expr, ir.Call)
        and is_loss_function(expr.func.path or "")
        and _sets_against(expr.args, name)
    )


def _is_square_of(expr: ir.Expr, name: str) -> bool:
    if isinstance(expr, ir.Call) and expr.method in ("pow", "square") and isinstance(expr.func, ir.Attr):
        base = expr.args[0] if expr.func.path is not None and expr.args else expr.func.base
    elif isinstance(expr, ir.Op) and expr.op == "**":
        base = expr.operands[0]
    else:
        return False
    return isinstance(base, ir.Op) and base.op == "-" and _sets_against(base.operands, name)


def _sets_against(operands: tuple[ir.Expr, ...], name: str) -> bool:
    """Whether one of two is the input, and the other one cut from its graph."""
    if len(operands) < 2:
        return False
    first, second = operands[:2]
    return (_is_it(first, name) and _is_cut(second)) or (_is_it(second, name) and _is_cut(first))


def _is_straight_through(expr: ir.Expr, name: str) -> bool:
    if not isinstance(expr, ir.Op) or expr.op != "+":
        return False
    left, right = expr.operands
    return any(
        _is_it(own, name)
        and isinstance(other, ir.Call)
        and cuts_graph(other)
        and any(_is_it(part, name) for part in ir.walk(other.func))
        for own, other in ((left, right), (right, left))
    )


def _is_cut(expr: ir.Expr) -> bool:
    """`q.detach()` of what the function has made; what its object keeps may be cut for other reasons."""
    if not cuts_graph(expr) or not isinstance(expr, (ir.Call, ir.Attr)):
        return False
    cut = expr.func if isinstance(expr, ir.Call) else expr
    return isinstance(cut, ir.Attr) and isinstance(cut.base, ir.Name)


def _is_it(expr: ir.Expr, name: str) -> bool:
    while isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.method in _SHAPES:
        expr = expr.func.base
    return isinstance(expr, ir.Name) and expr.id == name

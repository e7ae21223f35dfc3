"""Sums that pool rather than reduce: over the positions of a batch, each weighted by a mask, where a vector is left of each sample."""

from __future__ import annotations

from gpulint.analysis.code import ir


def is_pooling(function: ir.Function, call: ir.Call) -> bool:
    """`(hidden * mask.unsqueeze(-1)).sum(1)`, `torch.sum(hidden * mask, 1)` of a mask that was spread over the features."""
    if call.method != "sum" or _dimension(call) in (-1, None):
        return False
    summed: tuple[ir.Expr, ...] = call.args[:1]
    if isinstance(call.func, ir.Attr):
        summed = (call.func.base, *summed)
    return any(
        isinstance(expr, ir.Op)
        and expr.op == "*"
        and any(_is_spread(function, factor) for factor in expr.operands)
        for expr in summed
    )


def _dimension(call: ir.Call) -> object:
    for name, value in call.keywords:
        if name in ("dim", "axis"):
            return value.value if isinstance(value, ir.Const) else None
    last = call.args[-1] if call.args else None
    return last.value if isinstance(last, ir.Const) else None


def _is_spread(function: ir.Function, factor: ir.Expr) -> bool:
    """Whether a factor has a last dimension of one that is stretched over the features, here or where it is bound."""
    if any(_adds_last(part) for part in ir.walk(factor)):
        return True
    return isinstance(factor, ir.Name) and any(
        isinstance(statement, ir.Assign)
        and statement.value is not None
        and any(target.path == factor.id for target in statement.targets)
        and any(_adds_last(part) for part in ir.walk(statement.value))
        for statement in ir.statements(function.body)
    )


def _adds_last(part: ir.Expr) -> bool:
    """`x.unsqueeze(-1)`, `x[..., None]`, `x[:, :, None]`."""
    if isinstance(part, ir.Call):
        last = part.args[-1] if part.args else None
        return part.method == "unsqueeze" and isinstance(last, ir.Const) and last.value in (-1, 2, 3)
    if isinstance(part, ir.Sub) and isinstance(part.index, ir.Seq) and len(part.index.items) > 1:
        last = part.index.items[-1]
        return isinstance(last, ir.Const) and last.value is None
    return False

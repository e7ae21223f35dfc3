"""Slots: how many there are, and those that are emptied or filled again in turn, of which a ring holds no more than it has
places."""

from __future__ import annotations

from gpulint.analysis.code import ir


def frees_slots(function: ir.Function, path: str) -> bool:
    """Whether the class sets slots of its attribute to None, `self.pending[i] = None`, or the function fills them in turn,
    `self.pending[n % size] = x`."""
    owner = path.partition("[")[0]
    if function.cls is None or "." not in owner:
        return False
    for method in function.cls.methods.values():
        for statement in ir.statements(method.body):
            if isinstance(statement, ir.Assign):
                for target in statement.targets:
                    if isinstance(target, ir.Sub) and target.base.path == owner:
                        if isinstance(statement.value, ir.Const) and statement.value.value is None:
                            return True
                        if method is function and isinstance(target.index, ir.Op) and target.index.op == "%":
                            return True
    return False


def counts_given(function: ir.Function, count: ir.Expr) -> bool:
    """Whether a number is how many of something the function is given, as it says at its start: `n = len(xs)`,
    `n = xs.size()[0]`."""
    if not isinstance(count, ir.Name):
        return False
    given = {param.name for param in function.params}
    sources = [
        statement.value
        for statement in function.body
        if isinstance(statement, ir.Assign) and any(target.path == count.id for target in statement.targets)
    ]
    return len(sources) == 1 and sources[0] is not None and _counted(sources[0]) in given


def _counted(expr: ir.Expr) -> str | None:
    """`xs` of `len(xs)`, `xs.shape[0]`, `xs.size()[0]` and `xs.size(0)`."""
    if isinstance(expr, ir.Call) and expr.method == "len" and len(expr.args) == 1:
        return expr.args[0].path
    if isinstance(expr, ir.Sub) and _is_zero(expr.index):
        expr = expr.base.func if isinstance(expr.base, ir.Call) and not expr.base.args else expr.base
    elif isinstance(expr, ir.Call) and len(expr.args) == 1 and _is_zero(expr.args[0]):
        expr = expr.func
    else:
        return None
    return expr.base.path if isinstance(expr, ir.Attr) and expr.attr in ("size", "shape") else None


def _is_zero(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value == 0

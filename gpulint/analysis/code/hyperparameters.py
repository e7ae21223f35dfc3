"""Entries of a checkpoint that say how its model is built: `Net(settings.width, settings.depth)`."""

from __future__ import annotations

from collections.abc import Iterator

from gpulint.analysis.code import ir
from gpulint.analysis.torch.names import HOST_ATTRS, TO_DEVICE

_NO_SETTINGS = HOST_ATTRS | TO_DEVICE | {"data", "grad", "weight", "bias", "T"}


def are_settings(function: ir.Function, stored: ir.Assign) -> bool:
    """Whether what a statement stores in an attribute only has fields read, which build the model that is restored."""
    paths = {target.path for target in stored.targets if target.path is not None}
    if isinstance(stored.value, ir.Name):
        paths.add(stored.value.id)
    attributes = {path.rpartition(".")[2] for path in paths if "." in path}
    restored = {
        call.func.base.path
        for _, call in ir.calls(function.body)
        if call.method == "load_state_dict" and isinstance(call.func, ir.Attr)
    }
    methods = function.cls.methods.values() if function.cls is not None else (function,)
    for method in methods:
        names = {path for path in paths if "." not in path} if method is function else set()
        if not all(_is_field(fields) for _, fields in _reads(method, names, attributes, stored)):
            return False
    names = {path for path in paths if "." not in path}
    return any(
        isinstance(statement, ir.Assign) and any(target.path in restored for target in statement.targets)
        for statement, fields in _reads(function, names, attributes, stored)
        if any(isinstance(around, ir.Call) and around.method[:1].isupper() for around in fields)
    )


def _reads(
    function: ir.Function, names: set[str], attributes: set[str], stored: ir.Stmt
) -> Iterator[tuple[ir.Stmt, tuple[ir.Expr, ...]]]:
    """Each read of one of the places, with the expressions around it, but for where they are bound."""
    for statement in ir.statements(function.body):
        bound = statement.targets if isinstance(statement, ir.Assign) else []
        if statement is stored:
            continue
        stack: list[tuple[ir.Expr, tuple[ir.Expr, ...]]] = [(root, ()) for root in statement.expressions()]
        while stack:
            expr, around = stack.pop()
            named = isinstance(expr, ir.Name) and expr.id in names
            if named or (isinstance(expr, ir.Attr) and expr.attr in attributes):
                if expr not in bound:
                    yield statement, around
                continue
            stack += [(child, (expr, *around)) for child in expr.children()]


def _is_field(around: tuple[ir.Expr, ...]) -> bool:
    """`settings.width`, `settings["width"]`: no method, and no part that is a tensor."""
    first = around[0] if around else None
    if isinstance(first, ir.Attr):
        called = len(around) > 1 and isinstance(around[1], ir.Call) and around[1].func is first
        return first.attr not in _NO_SETTINGS and not called
    return (
        isinstance(first, ir.Sub) and isinstance(first.index, ir.Const) and isinstance(first.index.value, str)
    )

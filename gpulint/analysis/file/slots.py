"""Slots that what they hold does not outlive: read back at once, or written over by the next call."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.facts import Hold, Keep


def is_read_back(hold: Hold) -> bool:
    """`self.cache[:n, a:b] = k` and then `self.cache[:n, :b]` in the same function: what generates text keeps its keys so.
    It is run without grad, or else the graph is wanted."""
    owner = hold.place.holder.partition("[")[0]
    statements = list(ir.statements(hold.function.body))
    if not isinstance(hold.stmt, ir.Assign) or hold.stmt not in statements:
        return False
    return any(
        part.path == owner
        for statement in statements[statements.index(hold.stmt) + 1 :]
        for root in statement.expressions()
        if not any(root is target for target in targets(statement))
        for part in ir.walk(root)
    )


def has_one_key(keep: Keep, sources: dict[str, ir.Expr]) -> bool:
    """`self.record("sparsity", loss)` of a method with `self.found[name] = value`: the next call writes over it."""
    statement = keep.stmt
    if keep.how != "item" or not isinstance(statement, ir.Assign) or statement.value is None:
        return False
    target = statement.targets[0]
    if not isinstance(target, ir.Sub) or target.index.path is None:
        return False
    adds = any(part.path == target.base.path for part in ir.walk(statement.value))
    named = isinstance(sources.get(target.index.path), ir.Const) or _is_keyword(keep.function, target.index)
    return not adds and named


def _is_keyword(function: ir.Function, index: ir.Expr) -> bool:
    """`for name, value in values.items():` of a `**values`: there are as many names as the calls have."""
    given = {param.name for param in function.params if param.kind == "doublestar"}
    return any(
        isinstance(statement, ir.For)
        and isinstance(statement.iterable, ir.Call)
        and isinstance(statement.iterable.func, ir.Attr)
        and statement.iterable.func.base.path in given
        and any(part.path == index.path for part in ir.walk(statement.target))
        for statement in ir.statements(function.body)
    )

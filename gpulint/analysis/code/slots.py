"""Slots: how many there are, and those that are emptied or filled again in turn, of which a ring holds no more than it has
places."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets


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


def treats_as_table(function: ir.Function, path: str) -> bool:
    """Whether a function looks entries up in something by their names, or goes through them: `out["emb"]`, `out.items()`."""
    for statement in ir.statements(function.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Sub) and part.base.path == path and isinstance(part.index, ir.Const):
                if isinstance(part.index.value, str):
                    return True
            elif isinstance(part, ir.Call) and isinstance(part.func, ir.Attr) and part.func.base.path == path:
                if part.method in ("items", "keys", "values"):
                    return True
    return False


def only_fills(function: ir.Function, name: str) -> bool:
    """Whether a function writes entries into a table that it is given, `out["emb"] = x`, gives it back, and reads none that
    it has not written: what was in there before goes nowhere."""
    written: set[str] = set()
    for statement in ir.statements(function.body):
        stored = targets(statement) if isinstance(statement, ir.Assign) else []
        entries = [one for one in stored if isinstance(one, ir.Sub) and one.base.path == name]
        passed = {id(part) for entry in entries for part in (entry, entry.base)}
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Sub) and part.base.path == name and part.path in written:
                passed.add(id(part.base))
            elif isinstance(part, ir.Name) and part.id == name and id(part) not in passed:
                if not (isinstance(statement, ir.Return) and _is_given_back(statement, part)):
                    return False
        if statement in function.body:  # not in a branch
            written |= {entry.path for entry in entries if entry.path is not None}
    return True


def _is_given_back(statement: ir.Return, part: ir.Expr) -> bool:
    value = statement.value
    return value is part or (isinstance(value, ir.Seq) and any(item is part for item in value.items))


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

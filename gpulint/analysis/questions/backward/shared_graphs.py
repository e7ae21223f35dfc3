"""Graphs that two losses share through something unseen: what a helper makes with the function that it is handed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs
from gpulint.analysis.torch.methods import NO_GRAPH

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Backward
    from gpulint.analysis.file.program import FileAnalysis


def share_unseen(file: FileAnalysis, one: Backward, other: Backward) -> bool:
    """`actions = self.sample(obs, run=self.policy)`, then `critic1(obs, actions)` in one loss and `critic2(obs, actions)` in the
    other: whoever calls `run` may give its graph to both."""
    function = one.function
    if function.cls is None or other.function is not function or one.path is None or other.path is None:
        return False
    handed = {
        target.path
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign)
        for target, value in pairs(statement)
        if target.path is not None and isinstance(value, ir.Call) and _is_handed_method(file, function, value)
    }
    if not handed:
        return False
    sources = _sources(function)
    return not handed.isdisjoint(_reached(one.path, sources) & _reached(other.path, sources))


def _is_handed_method(file: FileAnalysis, function: ir.Function, call: ir.Call) -> bool:
    """Whether a method of the object is given to another one, as a value."""
    info = file.class_of(function)
    own = function.params[0].name if function.params else ""
    if info is None or not (call.func.path or "").startswith(f"{own}."):
        return False
    return any(
        isinstance(given, ir.Attr) and given.base.path == own and info.method(given.attr) is not None
        for given in (*call.args, *(value for _, value in call.keywords))
    )


def _sources(function: ir.Function) -> dict[str, set[str]]:
    """For each name the names that its values are made of with their graphs."""
    found: dict[str, set[str]] = {}
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign):
            for target, value in pairs(statement):
                if target.path is not None:
                    found.setdefault(target.path, set()).update(_read(value))
        elif isinstance(statement, ir.AugAssign) and statement.target.path is not None:
            found.setdefault(statement.target.path, set()).update(_read(statement.value))
    return found


def _read(expr: ir.Expr) -> set[str]:
    if isinstance(expr, ir.Call) and expr.method in NO_GRAPH:
        return set()
    if isinstance(expr, (ir.Name, ir.Attr)) and expr.path is not None:
        return {expr.path}
    return {name for child in expr.children() for name in _read(child)}


def _reached(name: str, sources: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    queue = [name]
    while queue:
        current = queue.pop()
        if current not in found:
            found.add(current)
            queue.extend(sources.get(current, ()))
    return found

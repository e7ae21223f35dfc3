"""What other classes of the same base do with what they are handed in the same method: one contract for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs
from gpulint.analysis.questions.reached.dispatch import have_common_base

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_ENOUGH = 2  # one alone may have reasons of its own


def detached_by_siblings(file: FileAnalysis, function: ir.Function) -> str:
    """The method, `Accuracy.update`, of another class of the project with the same base, which detaches what it is handed:
    whoever calls them hands over what has a graph. Empty where fewer than two do so."""
    project, owner = file.project, function.cls
    if project is None or owner is None:
        return ""
    found = [
        method.qualname
        for method in project.methods_named(file.filename, function.name)
        if method.cls is not None and method.cls.name != owner.name and _detaches_given(method)
        if have_common_base(file, (owner.name, method.cls.name))
    ]
    return sorted(found)[0] if len(found) >= _ENOUGH else ""


def _detaches_given(method: ir.Function) -> bool:
    given = {param.name for param in method.params[1:]}
    for statement in ir.statements(method.body):
        for call in ir.own_calls(statement):
            base = call.func.base if call.method == "detach" and isinstance(call.func, ir.Attr) else None
            if base is not None and _is_of(base, given):
                return True
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target, value in pairs(statement):
                if _is_of(value, given):
                    given |= {part.id for part in ir.walk(target) if isinstance(part, ir.Name)}
    return False


def _is_of(expr: ir.Expr, names: set[str]) -> bool:
    return any(isinstance(part, ir.Name) and part.id in names for part in ir.walk(expr))

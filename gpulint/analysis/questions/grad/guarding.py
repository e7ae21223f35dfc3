"""Whether grad can be switched off for a statement without touching anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.questions.backward.under_calls import BackwardUnderCalls
from gpulint.analysis.questions.grad.strangers import Strangers

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_SIMPLE = (ir.Assign, ir.AugAssign, ir.ExprStmt, ir.Return)


class Guarding:
    """Asks the statements of one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._strangers = Strangers(file.function_facts)
        self._backward = BackwardUnderCalls()

    def doubt(self, function: ir.Function, statement: ir.Stmt) -> str | None:
        """In one clause, what may want grad in a statement under no_grad all the same: unseen code that runs there; empty where
        nothing does, None where the statement cannot be put under a `with`, or a backward may run in it."""
        if not isinstance(statement, _SIMPLE) or _suspends(statement):
            return None
        if any(self._backward.of_call(function, call) for call in ir.own_calls(statement)):
            return None
        stranger = self._strangers.among(function, [statement])
        return f"`{stranger}` is not seen, and may need grad" if stranger is not None else ""


def uses_as_value(root: ir.Expr, function: ir.Function) -> bool:
    """Whether an expression does anything with the function but call it: hands it on, reads its `__code__`."""
    called = {id(part.func) for part in ir.walk(root) if isinstance(part, ir.Call)}
    return any(
        id(part) not in called
        and (
            (isinstance(part, ir.Attr) and part.attr == function.name and function.cls is not None)
            or (isinstance(part, ir.Name) and part.id == function.name and function.cls is None)
        )
        for part in ir.walk(root)
    )


def _suspends(statement: ir.Stmt) -> bool:
    """Whether the function may be left in the middle of a statement, so that others run with grad off."""
    return any(
        isinstance(part, ir.Wrapper) and part.kind in ("yield", "yield from", "await")
        for part in ir.own_parts(statement)
    )

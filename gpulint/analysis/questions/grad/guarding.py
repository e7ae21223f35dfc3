"""Where grad can be switched off for some forwards without touching anything else.

A decorator covers all that a function does, and changes what the function is for whoever looks at it; a `with` around a
loop covers whatever the loop calls. Both are for code that is seen to need no grad. Else only the forwards' own statements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.questions.backward.under_calls import BackwardUnderCalls
from gpulint.analysis.questions.grad.strangers import Strangers

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_SIMPLE = (ir.Assign, ir.AugAssign, ir.ExprStmt, ir.Return)


@dataclass(frozen=True, slots=True)
class Cover:
    """What to put under no_grad: the function (`whole`), or runs of statements that follow one another in a block.
    `doubt` says in one clause what may want grad all the same: unseen code that runs under it or gets what it gives."""

    whole: bool
    runs: tuple[tuple[ir.Stmt, ...], ...] = ()
    loop: bool = False
    doubt: str = ""


class Guarding:
    """Chooses covers in one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._strangers = Strangers(file, file.function_facts)
        self._backward = BackwardUnderCalls()

    def statement(self, function: ir.Function, statement: ir.Stmt) -> Cover | None:
        """The cover of one statement."""
        if not isinstance(statement, _SIMPLE) or _suspends([statement]):
            return None
        if any(self._backward.of_call(function, call) for call in ir.own_calls(statement)):
            return None
        return Cover(False, ((statement,),), doubt=self._strange(function, [statement]))

    def _strange(self, function: ir.Function, block: list[ir.Stmt]) -> str:
        """What speaks against grad being off for some statements; empty where all that they call is harmless."""
        stranger = self._strangers.among(function, block)
        return f"`{stranger}` is not seen, and may need grad" if stranger is not None else ""

    # --- the decorator -------------------------------------------------------------------------------------------


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


def _suspends(block: list[ir.Stmt]) -> bool:
    """Whether the function may be left in the middle of the statements, so that others run with grad off."""
    return any(
        isinstance(part, ir.Wrapper) and part.kind in ("yield", "yield from", "await")
        for statement in ir.statements(block)
        for part in ir.own_parts(statement)
    )

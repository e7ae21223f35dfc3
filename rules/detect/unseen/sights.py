"""What the text around each statement of a function says: the grad mode, the loops and the branches it stands in.

The interpreter knows the grad mode of the forwards that it sees. Calls whose code is out of sight it does not record, and
of those this tells the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.outside import is_certain, switches
from gpulint.analysis.file import gradmode
from gpulint.analysis.file.lookup import qualified
from gpulint.analysis.torch import frameworks
from gpulint.analysis.values.values import Grad

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_SPEAKS_OF_GRAD = re.compile(r"(?i)grad|infer|eval|valid|frozen|freeze|ctx|context|mode")


@dataclass(frozen=True, slots=True)
class Sight:
    """A statement, and what is around it: the outermost loop and branch first."""

    statement: ir.Stmt
    grad: Grad
    loops: tuple[ir.For | ir.While, ...] = ()
    branches: tuple[tuple[ir.If, bool], ...] = ()  # with whether it is the branch of the test's being true
    rescuing: bool = False  # in an `except`


def sights(file: FileAnalysis, function: ir.Function) -> list[Sight]:
    """The statements of a function in the order of the text."""
    start = Sight(function.body[0], file.grad_at_entry(function)) if function.body else None
    if start is None:
        return []
    return list(_Walk(file, function).block(function.body, start))


class _Walk:
    def __init__(self, file: FileAnalysis, function: ir.Function) -> None:
        self._file = file
        self._function = function
        self._bound: dict[str, ir.Expr] = {}  # names of contexts: `ctx = torch.no_grad()`

    def block(self, block: list[ir.Stmt], around: Sight) -> Iterator[Sight]:
        for statement in block:
            around = replace(around, statement=statement)
            mode = self._switch(statement)
            if mode is not None:
                around = replace(around, grad=mode)
            yield around
            self._note(statement)
            yield from self._inside(statement, around)

    def _inside(self, statement: ir.Stmt, around: Sight) -> Iterator[Sight]:
        if isinstance(statement, (ir.For, ir.While)):
            inner = replace(around, loops=(*around.loops, statement))
            yield from self.block(statement.body, inner)
            yield from self.block(statement.orelse, around)
        elif isinstance(statement, ir.If):
            for holds, branch in ((True, statement.body), (False, statement.orelse)):
                yield from self.block(
                    branch, replace(around, branches=(*around.branches, (statement, holds)))
                )
        elif isinstance(statement, ir.With):
            yield from self.block(statement.body, replace(around, grad=self._entered(statement, around.grad)))
        elif isinstance(statement, ir.Try):
            yield from self.block(statement.body, around)
            for handler in statement.handlers:
                yield from self.block(handler.body, replace(around, rescuing=True))
            yield from self.block(statement.orelse, around)
            yield from self.block(statement.final, around)
        else:
            for inner_block in statement.blocks():
                yield from self.block(inner_block, around)

    def _note(self, statement: ir.Stmt) -> None:
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target in statement.targets:
                if target.path is not None:
                    self._bound[target.path] = statement.value

    def _switch(self, statement: ir.Stmt) -> Grad | None:
        """What `torch.set_grad_enabled(…)`, `ctx.__enter__()` and `stack.enter_context(…)` leave grad at."""
        if made := switches(statement):
            certain = is_certain(statement, made[0])
            return gradmode.of_call("torch.set_grad_enabled", made[0]) if certain else Grad.UNKNOWN
        call = statement.value if isinstance(statement, ir.ExprStmt) else None
        if isinstance(call, ir.Call) and call.method == "__enter__" and isinstance(call.func, ir.Attr):
            return self._mode(call.func.base)
        if isinstance(call, ir.Call) and call.method == "enter_context" and call.args:
            return self._mode(call.args[0])
        return None

    def _entered(self, statement: ir.With, grad: Grad) -> Grad:
        for expr, _ in statement.items:
            mode = self._mode(expr)
            grad = grad if mode is None else mode
        return grad

    def _mode(self, expr: ir.Expr, depth: int = 3) -> Grad | None:
        """The grad mode that a context sets; None where it leaves it alone, as far as its name tells."""
        if isinstance(expr, ir.Op) and expr.op == "if":
            modes = {self._mode(branch, depth) for branch in expr.operands[1:]}
            return modes.pop() if len(modes) == 1 else Grad.UNKNOWN
        call = expr if isinstance(expr, ir.Call) else None
        path = call.func.path if call is not None else expr.path
        full = qualified(self._file, self._function, path)
        mode = gradmode.of_call(full, call)
        if mode is not None or gradmode.is_neutral_context(expr) or full in frameworks.NEUTRAL_CALLS:
            return mode
        if full is not None and full.partition(".")[0] in frameworks.NEUTRAL_LIBRARIES:
            return None
        if path in self._bound and depth:
            return self._mode(self._bound[path], depth - 1)
        words = self._words_of(path)
        if words & {"no_grad", "inference_mode"}:
            return Grad.DISABLED
        if words & {"set_grad_enabled", "enable_grad"}:
            return Grad.UNKNOWN
        last = (call.method if call is not None else (path or "")).rpartition(".")[2]
        unknown = not words and _SPEAKS_OF_GRAD.search(last) is not None
        return Grad.UNKNOWN if unknown or last == "" else None

    def _words_of(self, path: str | None) -> set[str]:
        """The words of the project's function or class that makes a context, by its last name."""
        last = (path or "").rpartition(".")[2]
        found: set[str] = set()
        for function in self._file.module.functions:
            owner = function.cls.name if function.cls is not None else None
            if function.name == last or (owner == last and function.name in ("__enter__", "__init__")):
                found |= self._file.evidence[function].words | {function.name}
        if not found and path is not None:
            full = qualified(self._file, self._function, path)
            value = self._file.imported_value(full) if full is not None else None
            if value is not None and isinstance(value.ref, ir.Function):
                found |= value.ref.home.evidence[value.ref].words | {value.ref.name}
        return found

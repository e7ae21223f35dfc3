"""How a name is used in a function besides being added to: does every use only read a number?"""

from __future__ import annotations

from dataclasses import dataclass

from gpulint.analysis import ir
from gpulint.analysis.assignments import is_accumulation, targets
from gpulint.analysis.names import NUMERIC_SINKS, SINK_METHODS

_ADDING = frozenset("append extend insert appendleft add".split())
_NUMERIC_CALLS = NUMERIC_SINKS | {
    "sum",
    "min",
    "max",
    "mean",
    "sqrt",
    "exp",
    "log",
    "isnan",
    "isfinite",
    "array",
    "average",
}


@dataclass(frozen=True, slots=True)
class Found:
    """`any`: it is used at all. `only_numbers`: a Python number in its place would do everywhere."""

    any: bool
    only_numbers: bool


class Uses:
    """The uses of names in one function's body."""

    def __init__(self, function: ir.Function) -> None:
        self._function = function
        self._names: dict[str, list[bool]] | None = None

    def of(self, path: str) -> Found:
        if self._names is None:
            self._names = {}
            for statement in ir.statements(self._function.body):
                self._statement(statement)
        uses = self._names.get(path, [])
        return Found(bool(uses), all(uses))

    def _statement(self, statement: ir.Stmt) -> None:
        if isinstance(statement, ir.AugAssign):
            numeric = statement.target.path is not None and isinstance(statement.target, ir.Name)
            self._expr(statement.value, numeric and _own(statement.value, statement.target.path))
            return
        if isinstance(statement, ir.Assign) and statement.value is not None:
            self._assign(statement)
            return
        if isinstance(statement, ir.Return):
            if statement.value is not None:
                self._expr(statement.value, False)
            return
        if isinstance(statement, ir.If):
            self._expr(statement.test, isinstance(statement.test, ir.Op))
            return
        if isinstance(statement, ir.FunctionDef):
            for inner in ir.statements(statement.function.body):
                for root in inner.expressions():
                    self._expr(root, False)
            return
        if isinstance(statement, (ir.For, ir.While, ir.With)):
            for root in statement.expressions():
                self._expr(root, False)
            return
        for root in statement.expressions():
            self._expr(root, False)

    def _assign(self, statement: ir.Assign) -> None:
        assert statement.value is not None
        target = statement.targets[0]
        if len(statement.targets) == 1 and is_accumulation(target, statement.value):
            return
        if len(statement.targets) == 1 and isinstance(target, ir.Name) and target.path is not None:
            # `mean = total / n`: the new name must be a number's too.
            if isinstance(statement.value, ir.Op) and statement.value.op in ("+", "-", "*", "/"):
                self._expr(statement.value, True)
                return
        for other in targets(statement):
            if not isinstance(other, ir.Name):
                self._expr(other, False)
        self._expr(statement.value, False)

    def _note(self, path: str, numeric: bool) -> None:
        assert self._names is not None
        self._names.setdefault(path, []).append(numeric)

    def _expr(self, expr: ir.Expr, numeric: bool) -> None:
        """`numeric`: what surrounds the expression would take a number as well as a tensor."""
        if isinstance(expr, (ir.Name, ir.Attr, ir.Sub)) and expr.path is not None:
            self._note(expr.path, numeric)
            if isinstance(expr, ir.Name):
                return
        if isinstance(expr, ir.Call):
            self._call(expr)
        elif isinstance(expr, ir.Text):
            for part in expr.parts:
                self._expr(part, True)
        elif isinstance(expr, ir.Op):
            self._operation(expr, numeric)
        elif isinstance(expr, ir.DictDisplay):
            for key, value in expr.pairs:
                if key is not None:
                    self._expr(key, False)
                self._expr(value, numeric)
        elif isinstance(expr, ir.Seq):
            for item in expr.items:
                self._expr(item, numeric)
        else:
            for child in expr.children():
                self._expr(child, False)

    def _operation(self, expr: ir.Op, numeric: bool) -> None:
        inner = numeric if expr.op in ("+", "-", "*", "/", "**", "neg", "%", "if") else True
        if expr.op == "%" and isinstance(expr.operands[0], ir.Const):
            inner = True
        for operand in expr.operands:
            self._expr(operand, inner)

    def _call(self, expr: ir.Call) -> None:
        name = expr.method
        numeric = name in _NUMERIC_CALLS or name in SINK_METHODS or name in ("log", "update", "set_postfix")
        if isinstance(expr.func, ir.Attr):
            base = expr.func.base
            if name in _ADDING and base.path is not None:
                for child in base.children():
                    self._expr(child, False)
            else:
                self._expr(base, False)
        for arg in expr.args:
            self._expr(arg, numeric)
        for _, value in expr.keywords:
            self._expr(value, numeric)


def _own(value: ir.Expr, path: str | None) -> bool:
    return path is not None and any(part.path == path for part in ir.walk(value))

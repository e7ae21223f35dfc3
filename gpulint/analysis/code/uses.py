"""How a name is used in a function besides being added to: does every use only read a number?

A use that is out of sight is none of a number: what is returned, handed on, looped over or looked into may be asked for
what only tensors have.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import is_accumulation, targets
from gpulint.analysis.torch.methods import ADDING
from gpulint.analysis.torch.names import NUMERIC_SINKS, SINK_METHODS, Names

# Libraries whose functions make numbers of numbers, and whose results nobody can ask for what tensors have.
_NUMERIC = ("math.", "numpy.", "statistics.")
# Built in: what they give is what they are given, a tensor of tensors.
_LIKE_ARGUMENTS = frozenset("sum min max abs".split())
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "**", "neg", "%", "if", "and", "or"})
COMPARISONS = frozenset({"cmp", "==", "!="})  # of tensors: a tensor without a graph
QUESTIONS = frozenset({"cmp", "==", "!=", "not", "is", "is not", "in", "not in"})
# Whether what surrounds an expression takes a number: yes, no, or as the uses of the name it is bound to say.
_Numeric = bool | str


@dataclass(frozen=True, slots=True)
class Found:
    """`any`: it is used at all. `only_numbers`: a Python number in its place would do everywhere."""

    any: bool
    only_numbers: bool


class Uses:
    """The uses of names in one function's body."""

    def __init__(self, function: ir.Function, imports: Names) -> None:
        self._function = function
        self._imports = imports
        self._names: dict[str, list[_Numeric]] | None = None
        self._bound: set[str] = set()  # plain names that are the function's own

    def of(self, path: str) -> Found:
        if self._names is None:
            self._names = {}
            self._bind()
            for statement in ir.statements(self._function.body):
                self._statement(statement)
        used = bool(self._names.get(path))
        return Found(used, _first(path) in self._bound and self._only_numbers(path, set()))

    def _bind(self) -> None:
        shared = {param.name for param in self._function.params}
        for statement in ir.statements(self._function.body):
            if isinstance(statement, ir.Scope):
                shared |= set(statement.names)
            self._bound |= {target.id for target in targets(statement) if isinstance(target, ir.Name)}
        self._bound -= shared

    def _only_numbers(self, path: str, seen: set[str]) -> bool:
        assert self._names is not None
        if path in seen:
            return True
        seen.add(path)
        return all(
            self._only_numbers(numeric, seen) if isinstance(numeric, str) else numeric
            for used, uses in self._names.items()
            if _concerns(used, path)
            for numeric in uses
        )

    def _statement(self, statement: ir.Stmt) -> None:
        if isinstance(statement, ir.AugAssign):
            numeric = statement.target.path is not None and isinstance(statement.target, ir.Name)
            self._expr(statement.value, numeric and _own(statement.value, statement.target.path))
            return
        if isinstance(statement, ir.Assign) and statement.value is not None:
            self._assign(statement)
            return
        if isinstance(statement, ir.If):
            self._expr(statement.test, isinstance(statement.test, ir.Op))
            return
        if isinstance(statement, ir.FunctionDef):
            for inner in ir.statements(statement.function.body):
                for root in inner.expressions():
                    self._expr(root, False)
            return
        for root in statement.expressions():
            self._expr(root, False)

    def _assign(self, statement: ir.Assign) -> None:
        assert statement.value is not None
        target = statement.targets[0]
        if len(statement.targets) == 1 and is_accumulation(target, statement.value):
            return
        if len(statement.targets) == 1 and isinstance(target, ir.Name):
            # `mean = total / n`: the new name must be a number's too.
            computed = isinstance(statement.value, ir.Op) or self._is_like_arguments(statement.value)
            self._expr(statement.value, target.id if computed and target.id in self._bound else False)
            return
        for other in targets(statement):
            if not isinstance(other, ir.Name):
                self._target(other)
        self._expr(statement.value, False)

    def _target(self, target: ir.Expr) -> None:
        """`sums[key] = …` reads the key, and nothing of the dict."""
        inner = target.base if isinstance(target, ir.Sub) else target
        while isinstance(inner, (ir.Sub, ir.Attr)):
            inner = inner.base
        for child in target.children():
            if child is not inner:
                self._expr(child, False)

    def _note(self, path: str, numeric: _Numeric) -> None:
        assert self._names is not None
        self._names.setdefault(path, []).append(numeric)

    def _expr(self, expr: ir.Expr, numeric: _Numeric) -> None:
        """`numeric`: what surrounds the expression would take a number as well as a tensor."""
        if isinstance(expr, ir.Name):
            self._note(expr.id, numeric)
        elif isinstance(expr, ir.Sub) and expr.path is not None:
            self._note(expr.path, numeric)
        elif isinstance(expr, ir.Call):
            self._call(expr, numeric)
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

    def _operation(self, expr: ir.Op, numeric: _Numeric) -> None:
        inner = numeric if expr.op in _ARITHMETIC else expr.op in QUESTIONS
        if expr.op == "%" and isinstance(expr.operands[0], ir.Const):
            inner = True
        for operand in expr.operands:
            self._expr(operand, inner)

    def _is_like_arguments(self, expr: ir.Expr) -> bool:
        return (
            isinstance(expr, ir.Call)
            and isinstance(expr.func, ir.Name)
            and expr.method in _LIKE_ARGUMENTS
            and not expr.keywords
            and self._imports.qualify(expr.method) is None
        )

    def _takes_numbers(self, call: ir.Call) -> bool:
        name = call.method
        qualified = self._imports.qualify(call.func.path or "") or ""
        if qualified.startswith("torch"):
            return False
        return (
            qualified.startswith(_NUMERIC)
            or name in NUMERIC_SINKS
            or name in SINK_METHODS
            or name in ("log", "set_postfix")
        )

    def _call(self, expr: ir.Call, surroundings: _Numeric) -> None:
        numeric = surroundings if self._is_like_arguments(expr) else self._takes_numbers(expr)
        if isinstance(expr.func, ir.Attr):
            base = expr.func.base
            if expr.method in ADDING and base.path is not None:
                self._target(base)
            else:
                self._expr(base, False)
        for arg in expr.args:
            self._expr(arg, numeric)
        for _, value in expr.keywords:
            self._expr(value, numeric)


def _own(value: ir.Expr, path: str | None) -> bool:
    return path is not None and any(part.path == path for part in ir.walk(value))


def _first(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _concerns(used: str, path: str) -> bool:
    """Whether a use of one path may read what the other holds: the whole of it, or a part."""
    longer, shorter = (used, path) if len(used) > len(path) else (path, used)
    return longer == shorter or longer.startswith((f"{shorter}[", f"{shorter}."))

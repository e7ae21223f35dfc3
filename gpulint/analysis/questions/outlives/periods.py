"""After how many rounds a loop starts anew what it adds up: `if step % args.every == 0: total = 0`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import resets
from gpulint.analysis.questions.size.defaults import argument_defaults

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

MANY = 32  # rounds; gradients are accumulated over fewer, a log line is written after more


def rounds_between_resets(
    file: FileAnalysis, function: ir.Function, loop: ir.For | ir.While, path: str
) -> int | None:
    """How many rounds lie between two resets, where each stands under a condition that comes true at equal intervals and the
    program says how long these are; for an option of the command line, what it is by default."""
    conditions = [
        statement
        for statement in loop.body
        if isinstance(statement, ir.If) and path in resets(statement.body) and not statement.orelse
    ]
    others = [statement for statement in loop.body if statement not in conditions]
    if not conditions or path in resets(others):
        return None
    found = [number for one in conditions for number in _intervals(file, function, one.test)]
    return min(found) if len(found) == len(conditions) else None


def _intervals(file: FileAnalysis, function: ir.Function, test: ir.Expr) -> Iterator[int]:
    for part in ir.walk(test):
        if isinstance(part, ir.Op) and part.op == "%":
            number = _number(file, function, part.operands[1])
            if number is not None:
                yield number


def _number(file: FileAnalysis, function: ir.Function, expr: ir.Expr) -> int | None:
    if isinstance(expr, ir.Const):
        return expr.value if isinstance(expr.value, int) else None
    if isinstance(expr, ir.Attr):
        known = argument_defaults(file).get(expr.attr)
        return known if isinstance(known, int) else None
    if not isinstance(expr, ir.Name):
        return None
    param = next((param for param in function.params if param.name == expr.id), None)
    if param is not None:
        default = param.default
        return default.value if isinstance(default, ir.Const) and isinstance(default.value, int) else None
    bound = [
        statement.value
        for scope in (function, file.module.body)
        for statement in ir.statements(scope.body)
        if isinstance(statement, ir.Assign) and any(target.path == expr.id for target in statement.targets)
    ]
    only = bound[0] if len(bound) == 1 else None
    return only.value if isinstance(only, ir.Const) and isinstance(only.value, int) else None

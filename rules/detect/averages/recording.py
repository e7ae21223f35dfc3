"""Which statements run with grad enabled, read off the blocks around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.gradmode import is_neutral_context, of_call
from gpulint.analysis.values.values import Grad

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def recording(
    file: FileAnalysis, function: ir.Function, block: list[ir.Stmt], enabled: bool
) -> Iterator[ir.Stmt]:
    """The statements of a block that run with grad enabled, if the block does; where it is not certain, none."""
    if "set_grad_enabled" in file.evidence[function].words:
        return
    for statement in block:
        inner = enabled
        if isinstance(statement, ir.With):
            for expr, _ in statement.items:
                inner = _mode_of(file, expr, inner)
        if enabled:
            yield statement
        for nested in statement.blocks():
            yield from recording(file, function, nested, inner)


def _mode_of(file: FileAnalysis, expr: ir.Expr, enabled: bool) -> bool:
    if isinstance(expr, ir.Call) and expr.func.path is not None:
        mode = of_call(file.names.qualify(expr.func.path), expr)
        if mode is not None:
            return mode is Grad.ENABLED
    return enabled and is_neutral_context(expr)

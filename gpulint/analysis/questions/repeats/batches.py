"""How much one batch of a loader holds, where the loader is seen to be made: one sample, as its text says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 3  # callers of callers


def gives_one_at_a_time(file: FileAnalysis, function: ir.Function, loop: ir.For | ir.While) -> bool:
    """Whether a loop goes through a loader that is made with `batch_size=1`, here or by each caller in the file."""
    if not isinstance(loop, ir.For):
        return False
    through = loop.iterable
    while isinstance(through, ir.Call) and through.method in ("tqdm", "enumerate", "iter") and through.args:
        through = through.args[0]
    made = list(_makers(file, function, through, _DEPTH))
    return bool(made) and all(_is_of_one(one) for one in made)


def _makers(file: FileAnalysis, function: ir.Function, expr: ir.Expr, depth: int) -> Iterator[ir.Expr]:
    """The expressions that a place may come from."""
    bound = [
        statement.value
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and statement.value is not None
        if any(target.path == expr.path for target in targets(statement))
    ]
    if expr.path is None or not depth:
        yield expr
    elif bound:
        yield from bound
    elif any(param.name == expr.path for param in function.params):
        for caller, evidence in file.evidence.items():
            for _, call in ir.calls(caller.body) if function.name in evidence.called else ():
                if call.method == function.name and caller is not function:
                    given = bind_sources(function, call, function.cls is not None).get(expr.path)
                    yield from _makers(file, caller, given, depth - 1) if given is not None else (call,)
    else:
        yield expr


def _is_of_one(maker: ir.Expr) -> bool:
    if not isinstance(maker, ir.Call) or not maker.method.endswith("DataLoader"):
        return False
    size = maker.argument(1, "batch_size")
    return isinstance(size, ir.Const) and size.value == 1

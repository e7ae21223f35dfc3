"""How much one batch of a loader holds, where the loader is seen to be made: one sample, as its text says, or the default of the
command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.questions.size.constructing import Constructing
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 3  # callers of callers
_GOING_THROUGH = frozenset({"tqdm", "enumerate", "iter"})


def gives_one_at_a_time(file: FileAnalysis, function: ir.Function, loop: ir.For | ir.While) -> bool:
    """Whether a loop goes through a loader that is made with `batch_size=1`, here or by each caller, or draws from one in each
    of its rounds: `next(iter(loader))`."""
    drawn = [call.args[0] for _, call in ir.calls(loop.body) if call.method == "next" and call.args]
    through = [loop.iterable] if isinstance(loop, ir.For) else []
    return any(_comes_by_one(file, function, expr) for expr in (*through, *drawn))


def _comes_by_one(file: FileAnalysis, function: ir.Function, through: ir.Expr) -> bool:
    while isinstance(through, ir.Call) and through.method in _GOING_THROUGH and through.args:
        through = through.args[0]
    made = list(_makers(file, function, through, _DEPTH))
    return bool(made) and all(_is_of_one(place, one) for place, one in made)


def _makers(
    file: FileAnalysis, function: ir.Function, expr: ir.Expr, depth: int
) -> Iterator[tuple[ir.Function, ir.Expr]]:
    """The expressions that a place may come from, each with the function it stands in."""
    if expr.path is None or not depth:
        yield function, expr
    elif bound := _bound(function, expr.path):
        yield from ((function, value) for value in bound)
    elif any(param.name == expr.path for param in function.params):
        yield from _handed(file, function, expr.path, depth)
    elif bound := _bound(file.module.body, expr.path):
        yield from ((file.module.body, value) for value in bound)
    else:
        yield function, expr


def _bound(function: ir.Function, path: str) -> list[ir.Expr]:
    return [
        statement.value
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and statement.value is not None
        if any(target.path == path for target in targets(statement))
    ]


def _handed(
    file: FileAnalysis, function: ir.Function, name: str, depth: int
) -> Iterator[tuple[ir.Function, ir.Expr]]:
    """What the callers of a function hand over for a parameter, here and in the files that call it."""
    others = file.project.files_calling(file.filename, function) if file.project is not None else ()
    for home in (file, *(others or ())):
        for caller, _, call in home.calls_named(function.name):
            if caller is not function:
                given = bind_sources(function, call, function.cls is not None).get(name)
                if given is None:
                    yield caller, call
                else:
                    yield from _makers(home, caller, given, depth - 1)


def _is_of_one(function: ir.Function, maker: ir.Expr) -> bool:
    if not isinstance(maker, ir.Call) or not maker.method.endswith("DataLoader"):
        return False
    size = maker.argument(1, "batch_size")
    return size is not None and Constructing().number(function, size) == 1

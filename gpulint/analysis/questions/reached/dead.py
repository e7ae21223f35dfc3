"""Is there a way to a statement at all? Branches that somebody has switched off by hand, and those that no call of the
function chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.following import conditions, is_switched_off
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_SPAWNS = frozenset({"spawn", "start_processes"})  # they give each process its number first


def is_dead(file: FileAnalysis, function: ir.Function, statement: ir.Stmt) -> bool:
    """Whether a statement of a function never runs: under `if False:`, or under `if gpu is None:` where every call of the
    function in the file gives a number."""
    if is_switched_off(function.body, statement):
        return True
    wanted = (_wanted_none(test, holds) for test, holds in conditions(function.body, statement))
    return any(path is not None and _is_given(file, function, path) for path in wanted)


def _wanted_none(test: ir.Expr, holds: bool) -> str | None:
    """`x` of `if x is None`, and for what stands under `else` of `if x is not None`."""
    if not isinstance(test, ir.Op) or test.op != ("is" if holds else "is not"):
        return None
    place, none = test.operands[0], test.operands[1]
    return place.path if isinstance(none, ir.Const) and none.value is None else None


def _is_given(file: FileAnalysis, function: ir.Function, path: str) -> bool:
    """Whether a place is a parameter, or bound to one at the start of the function, that each call gives a value."""
    values = [
        statement.value
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and any(target.path == path for target in targets(statement))
    ]
    if values and not all(
        isinstance(value, ir.Name) and value in _first_values(function) for value in values
    ):
        return False
    names = {value.path for value in values if value is not None} or {path}
    return all(name is not None and _each_call_gives(file, function, name) for name in names)


def _first_values(function: ir.Function) -> list[ir.Expr]:
    """What the function's own block binds, outside of branches and loops."""
    return [s.value for s in function.body if isinstance(s, ir.Assign) and s.value is not None]


def _each_call_gives(file: FileAnalysis, function: ir.Function, name: str) -> bool:
    if function.cls is not None or all(param.name != name for param in function.params):
        return False
    given: list[bool] = []
    for other in file.module.functions:
        for _, call in ir.calls(other.body):
            if call.func.path == function.name:
                value = bind_sources(function, call, False).get(name)
                given.append(isinstance(value, ir.Const) and value.value is not None)
            elif any(
                arg.path == function.name for arg in (*call.args, *(value for _, value in call.keywords))
            ):
                first = function.params[0].name == name
                given.append(call.method in _SPAWNS and first)
    return bool(given) and all(given)

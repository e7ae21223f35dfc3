"""The callers of a function that bind what it returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import qualified

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


@dataclass(frozen=True, slots=True)
class Receiver:
    """A caller that binds what a function returns: `name` is the thing asked for there."""

    function: ir.Function
    stmt: ir.Stmt
    name: str


def receivers(function: ir.Function, name: str) -> Iterator[Receiver]:
    """The callers anywhere in the project that bind what a function returns under this name."""
    places = set(_places(function, name))
    if not places:
        return
    home: FileAnalysis = function.home
    others = home.project.files_calling(home.filename, function) if home.project is not None else None
    for file in (home, *(others or ())):
        for caller, statement, call in file.calls_named(function.name):
            if isinstance(statement, ir.Assign) and statement.value is call:
                if _may_call(file, caller, call, function) and len(statement.targets) == 1:
                    yield from _bound(caller, statement, statement.targets[0], places)


def _places(function: ir.Function, name: str) -> Iterator[tuple[int, int] | None]:
    """Where a name stands in what a function returns: alone (None), or at a place among so many."""
    for statement in ir.statements(function.body):
        value = statement.value if isinstance(statement, ir.Return) else None
        if isinstance(value, ir.Seq):
            yield from ((k, len(value.items)) for k, item in enumerate(value.items) if item.path == name)
        elif value is not None and value.path == name:
            yield None


def _may_call(file: FileAnalysis, caller: ir.Function, call: ir.Call, function: ir.Function) -> bool:
    """Whether a call may be of the function, as far as its name and what it is called on tell."""
    if function.cls is not None:
        return isinstance(call.func, ir.Attr)
    return isinstance(call.func, ir.Name) or qualified(file, caller, call.func.path) is not None


def _bound(
    caller: ir.Function, statement: ir.Stmt, target: ir.Expr, places: set[tuple[int, int] | None]
) -> Iterator[Receiver]:
    items = target.items if isinstance(target, ir.Seq) else ()
    for place in places:
        if place is None and isinstance(target, ir.Name):
            yield Receiver(caller, statement, target.id)
        elif place is not None and len(items) == place[1]:
            mine = items[place[0]].path
            if mine is not None:
                yield Receiver(caller, statement, mine)

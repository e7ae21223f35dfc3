"""Callers that put by what a function returns: in a method of their own, or a function further out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.callers import CallSite, call_sites, means
from gpulint.rules.detect.kept.definitions import Definitions

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import arithmetic_leaves, targets
from gpulint.analysis.file.lookup import called
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_FILLING = frozenset("append extend appendleft put".split())
_DEPTH = 4  # callers of callers


@dataclass(frozen=True, slots=True)
class Keeping:
    """The statement that puts something by, and the file that it stands in."""

    stmt: ir.Stmt
    home: FileAnalysis

    def as_seen_from(self, file: FileAnalysis) -> tuple[ir.Stmt, str]:
        """The place, as an answer in `file` names it."""
        return self.stmt, "" if self.home is file else self.home.filename


def keeper(
    file: FileAnalysis, function: ir.Function, position: int | None, depth: int = _DEPTH
) -> Keeping | None:
    """What puts by what a function returns, or the one of that position where it returns several: `every.append(step(x))` in a
    caller, `self.stored[key].append(value)` in a method that a caller hands it to. In another file a caller has to be seen
    to mean the function; what such a caller does itself with what it imports by name, is told there."""
    for site in call_sites(file, function) if depth else ():
        home: FileAnalysis = site.function.home
        is_followed_there = function.cls is None and depth == _DEPTH
        if home is not file and (is_followed_there or not means(site, function)):
            continue
        found = _appended(site.stmt, site.call)
        kept = Keeping(found, home) if found is not None else _kept_under_a_name(home, site, position, depth)
        if kept is not None:
            return kept
    return None


def _appended(statement: ir.Stmt, wanted: ir.Expr) -> ir.Stmt | None:
    for call in ir.own_calls(statement):
        if call.method in _FILLING and any(arg is wanted for arg in call.args):
            return statement
    return None


def _kept_under_a_name(
    file: FileAnalysis, site: CallSite, position: int | None, depth: int
) -> Keeping | None:
    name = _bound(site.stmt, site.call, position)
    if isinstance(site.stmt, ir.Return):
        return keeper(file, site.function, position, depth - 1) if site.stmt.value is site.call else None
    if name is None:
        return None
    for statement in Definitions(site.function).while_bound(name, site.stmt):
        for call in ir.own_calls(statement):
            if call.method in _FILLING and any(arg.path == name for arg in call.args):
                return Keeping(statement, file)
            for param in _given_as(file, site.function, call, name):
                callee = called(file, site.function, call)
                if callee is not None and (kept := _puts_by(callee, param)) is not None:
                    return Keeping(kept, callee.home)
        if _adds(statement, name):
            return Keeping(statement, file)
        if isinstance(statement, ir.Return) and statement.value is not None:
            items = statement.value.items if isinstance(statement.value, ir.Seq) else (statement.value,)
            for number, item in enumerate(items):
                if item.path == name:
                    place = number if isinstance(statement.value, ir.Seq) else None
                    return keeper(file, site.function, place, depth - 1)
    return None


def _adds(statement: ir.Stmt, name: str) -> bool:
    """`total = total * 0.9 + info`, `total += info`."""
    if isinstance(statement, ir.AugAssign):
        return statement.value.path == name
    if (
        isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Op)
        and len(statement.targets) == 1
    ):
        leaves = {leaf.path for leaf in arithmetic_leaves(statement.value)}
        return name in leaves and statement.targets[0].path in leaves
    return False


def _bound(statement: ir.Stmt, call: ir.Call, position: int | None) -> str | None:
    """The plain name that a caller gives the result."""
    if not isinstance(statement, ir.Assign) or statement.value is not call or len(statement.targets) != 1:
        return None
    target: ir.Expr = statement.targets[0]
    if isinstance(target, ir.Seq):
        if position is None or position >= len(target.items):
            return None
        target = target.items[position]
    elif position is not None:
        return None
    return target.id if isinstance(target, ir.Name) else None


def _given_as(file: FileAnalysis, caller: ir.Function, call: ir.Call, name: str) -> Iterator[str]:
    callee = called(file, caller, call)
    if callee is not None:
        for param, value in bind_sources(callee, call, callee.cls is not None).items():
            if value.path == name:
                yield param


def _puts_by(method: ir.Function, param: str) -> ir.Stmt | None:
    """The statement that puts a parameter, or what is in it, into something of the object's."""
    if method.cls is None or not method.params:
        return None
    own = method.params[0].name
    names = {param}
    for statement in ir.statements(method.body):
        if isinstance(statement, ir.For) and any(part.path in names for part in ir.walk(statement.iterable)):
            names |= {target.path for target in targets(statement) if target.path is not None}
        for call in ir.own_calls(statement):
            into = call.func.base if isinstance(call.func, ir.Attr) else None
            if call.method in _FILLING and into is not None and _root(into) == own:
                if any(arg.path in names for arg in call.args):
                    return statement
        if isinstance(statement, ir.Assign) and statement.value is not None and statement.value.path in names:
            if any(isinstance(t, (ir.Attr, ir.Sub)) and _root(t) == own for t in statement.targets):
                return statement
    return None


def _root(expr: ir.Expr) -> str | None:
    while isinstance(expr, (ir.Attr, ir.Sub)):
        expr = expr.base
    return expr.id if isinstance(expr, ir.Name) else None

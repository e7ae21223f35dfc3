"""Which method a call runs, where the class of its object is not written down: its own object's, or the only ones that fit.

A name alone says nothing. A call on the object itself runs what a subclass has put in the place of the method; and a call whose
arguments, and the number of values that are taken from it, only fit methods of one family of the project's classes, runs one
of these.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.lookup import called_in_project, class_made, qualified
from gpulint.analysis.file.reaching import fits
from gpulint.analysis.values.arguments import bind_sources
from gpulint.analysis.values.values import Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis
    from gpulint.analysis.file.surroundings import Surroundings
    from gpulint.analysis.values.values import Val


def runs(caller: ir.Function, stmt: ir.Stmt, call: ir.Call, function: ir.Function) -> bool:
    """Whether a call in `caller`, made by the statement, is seen to run the function, where the object is of its class."""
    known = called_in_project(caller, call)
    if known is not None and _is_same(known, function):
        return True
    home: FileAnalysis = caller.home
    project = home.project
    if function.cls is None or project is None or not isinstance(call.func, ir.Attr):
        return False
    if caller.cls is not None and caller.params and call.func.base.path == caller.params[0].name:
        overridden = known.cls if known is not None else caller.cls
        return overridden is not None and overridden.name in project.bases(function.cls.name)
    if known is not None or qualified(home, caller, call.func.base.path) is not None:
        return False  # another one, or of a module
    owner = class_of(home, caller, call.func.base)
    if owner is not None:
        method = owner.method(call.method)
        return method is not None and _is_same(method, function)
    return function.qualname in _only_fitting(home, stmt, call)


def _is_same(one: ir.Function, other: ir.Function) -> bool:
    if one is other:
        return True
    files = (os.path.abspath(each.home.filename) for each in (one, other))
    return one.qualname == other.qualname and len(set(files)) == 1


def class_of(home: FileAnalysis, caller: ir.Function, expr: ir.Expr, depth: int = 2) -> ClassInfo | None:
    """The one class of the project that an object is of, where it is seen to be made."""
    found = classes_of(home, caller, expr, depth) - {None}
    return next(iter(found)) if len(found) == 1 else None


def classes_of(
    home: FileAnalysis, caller: ir.Function, expr: ir.Expr, depth: int = 2, at: ir.Stmt | None = None
) -> frozenset[ClassInfo | None]:
    """The classes of the project that an object may be of, as it is seen to be made: in the function, before the statement `at`
    if one is given, in the constructor of the object that it belongs to, or in a caller that hands it over. None is among
    them where something else may be meant."""
    value: Val | None = None
    if isinstance(expr, ir.Name):
        if depth and any(param.name == expr.id for param in caller.params):
            return _of_parameter(home, caller, expr.id, depth)
        made = _made(caller, expr.id, at)
        if at is not None and made != {None}:
            return made
        if caller not in home.states:
            home.summary(caller)
        state = home.states.get(caller)
        value = state.vars.get(expr.id) if state is not None else None
        if value is None or value.kind is Kind.UNKNOWN:
            return made
    elif isinstance(expr, ir.Attr) and caller.params and expr.base.path == caller.params[0].name:
        info = home.class_of(caller)
        if info is not None:
            if not home.main:
                home.prepare(info)
            value = home.attr_value(info, expr.attr)
    known = value is not None and value.kind in (Kind.INSTANCE, Kind.MODULE)
    return frozenset(
        {value.ref if value is not None and known and isinstance(value.ref, ClassInfo) else None}
    )


def _made(caller: ir.Function, name: str, at: ir.Stmt | None) -> frozenset[ClassInfo | None]:
    """`memory = load(path) if path else Memory(size)`: the classes that the function is seen to make it of."""
    found: set[ClassInfo | None] = set()
    for statement in takewhile(lambda one: one is not at, ir.statements(caller.body)):
        if isinstance(statement, ir.Assign) and any(target.path == name for target in targets(statement)):
            value = statement.value
            whole = class_made(caller, value) if isinstance(value, ir.Call) else None
            parts = (
                [part for part in ir.walk(value) if isinstance(part, ir.Call)] if value is not None else []
            )
            found |= {whole} if whole is not None else {None, *(class_made(caller, part) for part in parts)}
    return frozenset(found or {None})


def _of_parameter(
    home: FileAnalysis, function: ir.Function, name: str, depth: int
) -> frozenset[ClassInfo | None]:
    """The classes of what callers hand over, as far as they are seen to make it."""
    others = home.project.files_calling(home.filename, function) if home.project is not None else ()
    found: set[ClassInfo | None] = set() if others is not None else {None}
    for file in (home, *(others or ())):
        for caller, stmt, call in file.calls_named(function.name):
            if caller is not function and fits(function, call):
                given = bind_sources(function, call, function.cls is not None).get(name)
                found |= classes_of(file, caller, given, depth - 1, stmt) if given is not None else {None}
    return frozenset(found or {None})


def _only_fitting(home: FileAnalysis, stmt: ir.Stmt, call: ir.Call) -> frozenset[str]:
    """The methods that the call may run for its shape, where all are of one family; none where it has no shape to speak of."""
    taken = places(stmt, call)
    project: Surroundings[FileAnalysis] | None = home.project
    if taken is None or project is None:
        return frozenset()
    named = project.methods_named(home.filename, call.method)
    fitting = [one for one in named if fits(one, call) and _may_give(one, taken)]
    related = have_common_base(home, [one.cls.name for one in fitting if one.cls is not None])
    return frozenset(one.qualname for one in fitting) if related else frozenset()


def places(stmt: ir.Stmt, call: ir.Call) -> int | None:
    """How many values a statement takes from a call, where it takes several."""
    if not isinstance(stmt, ir.Assign) or stmt.value is not call or len(stmt.targets) != 1:
        return None
    target = stmt.targets[0]
    if not isinstance(target, ir.Seq) or len(target.items) < 2:
        return None
    return (
        None
        if any(isinstance(item, (ir.Starred, ir.Wrapper)) for item in target.items)
        else len(target.items)
    )


def _may_give(method: ir.Function, taken: int) -> bool:
    """Whether a method may return so many values: it says so, or gives what something else gives."""
    for statement in ir.statements(method.body):
        value = statement.value if isinstance(statement, ir.Return) else None
        if isinstance(value, ir.Seq):
            if len(value.items) == taken:
                return True
        elif isinstance(value, (ir.Name, ir.Call)):
            return True
    return False


def have_common_base(home: FileAnalysis, classes: Sequence[str]) -> bool:
    """Whether classes, by their names, have a base in common that the project defines; one of them may be that base."""
    project: Surroundings[FileAnalysis] | None = home.project
    if project is None or not classes:
        return False
    common = frozenset.intersection(*map(project.bases, classes))
    texts = (rb"^[ \t]*class[ \t]+%s\b" % re.escape(name.encode()) for name in sorted(common))
    return any(project.contains(home.filename, re.compile(text, re.MULTILINE)) for text in texts)

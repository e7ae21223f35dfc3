"""What those who call a function do with its result, or give it: in this file, and in those of the project that call it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.definitions import Definitions

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs
from gpulint.analysis.file.lookup import called
from gpulint.analysis.file.reaching import fits
from gpulint.analysis.questions.grad.guarding import uses_as_value
from gpulint.analysis.questions.reached.dispatch import runs
from gpulint.analysis.torch.methods import NO_GRAPH
from gpulint.analysis.torch.names import NUMERIC_SINKS, SINK_METHODS, TO_HOST

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MOST = 12  # call sites looked at


class Use(Enum):
    """What becomes of a result at one call."""

    READ = "a number is read of it at once, or nothing"
    KEPT = "it is put by with its graph"
    UNSEEN = "it goes on to where nothing is seen"


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call, the statement that makes it and the function it stands in."""

    function: ir.Function
    stmt: ir.Stmt
    call: ir.Call


def call_sites(file: FileAnalysis, function: ir.Function) -> list[CallSite]:
    """The calls of a function that this file and the others of the project make, as far as they can be told by name and
    arguments."""
    found = list(_in_file(file, function))
    project = file.project
    if project is not None and not found and len(function.name) > 2:
        for other in project.files_calling(file.filename, function) or ():
            for caller in other.module.functions:
                for statement, call in ir.calls(caller.body):
                    if call.method == function.name and _may_mean(function, call):
                        found.append(CallSite(caller, statement, call))
                        if len(found) > _MOST:
                            return found
    return found


def means(site: CallSite, function: ir.Function) -> bool:
    """Whether a call is seen to run the function, and not only called by its name."""
    return runs(site.function, site.stmt, site.call, function)


def where(file: FileAnalysis, site: CallSite) -> tuple[ir.Stmt, str]:
    """The place of a call, as an answer in `file` names it."""
    home: FileAnalysis = site.function.home
    return site.stmt, "" if home is file else home.filename


def is_followed(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether a call in this file is known to run the function: the flow of values follows that, and tells where it is kept."""
    return any(
        caller is not function
        and function.name in file.evidence[caller].called
        and any(
            call.method == function.name and called(file, caller, call) is function
            for _, call in ir.calls(caller.body)
        )
        for caller in file.module.functions
    )


def is_told_there(file: FileAnalysis, function: ir.Function, sites: list[CallSite]) -> bool:
    """Whether the flow of values follows the calls: those of this file that are known to mean the function, and those of a
    function that other files import by its name."""
    elsewhere = function.cls is None and any(site.function.home is not file for site in sites)
    return is_followed(file, function) or elsewhere


def is_handed_on(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether the file uses the function as a value: a framework is given it, or it is returned."""
    return any(
        function.name in file.evidence[other].words
        and any(
            uses_as_value(root, function)
            for statement in ir.statements(other.body)
            for root in statement.expressions()
            if not isinstance(statement, ir.Return) or function.name in _called_makers(file, other)
        )
        for other in file.module.functions
    )


def _called_makers(file: FileAnalysis, maker: ir.Function) -> frozenset[str]:
    """The functions that another one makes and returns, where the file itself calls that one: it follows them."""
    inner = frozenset(one.name for one in file.module.functions if one.parent is maker)
    called_here = any(
        maker.name in file.evidence[one].called for one in file.module.functions if one is not maker
    )
    return inner if called_here else frozenset()


def _in_file(file: FileAnalysis, function: ir.Function) -> Iterator[CallSite]:
    for caller in file.module.functions:
        if caller is function or function.name not in file.evidence[caller].called:
            continue
        for statement, call in ir.calls(caller.body):
            if call.method == function.name:
                target = called(file, caller, call)
                if target is function or (target is None and _may_mean(function, call)):
                    yield CallSite(caller, statement, call)


def _may_mean(function: ir.Function, call: ir.Call) -> bool:
    """Whether a call of that name, of something that is not seen, fits the function."""
    is_method = function.cls is not None
    return isinstance(call.func, ir.Attr) == is_method and fits(function, call)


def uses_of(site: CallSite, position: int | None) -> Use:
    """What a caller does with the result, or with the one of that position where there are several."""
    statement = site.stmt
    if isinstance(statement, ir.ExprStmt) and statement.value is site.call:
        return Use.READ
    above = _above(statement, site.call)
    if above is not None:
        return above
    if not isinstance(statement, ir.Assign) or statement.value is None:
        return _kept_by(statement, site.call) or Use.UNSEEN
    if _takes_another(statement.value, site.call, position):
        return Use.READ
    names = list(_names(statement, position))
    if not names:
        return Use.UNSEEN
    found = [_of_name(site, name) for name in names]
    for use in (Use.KEPT, Use.UNSEEN):
        if use in found:
            return use
    return Use.READ


def _takes_another(value: ir.Expr, call: ir.Call, position: int | None) -> bool:
    """`step(x)[0]`, where the other one is asked about."""
    return position is not None and any(
        isinstance(part, ir.Sub)
        and part.base is call
        and isinstance(part.index, ir.Const)
        and isinstance(part.index.value, int)
        and part.index.value != position
        for part in ir.walk(value)
    )


def _names(statement: ir.Assign, position: int | None) -> Iterator[str]:
    for target in statement.targets:
        items = target.items if isinstance(target, ir.Seq) else ()
        if position is not None and items:
            if position < len(items) and not any(isinstance(item, ir.Wrapper) for item in items):
                yield items[position].path or ""
        else:
            yield target.path or ""


def _of_name(site: CallSite, name: str) -> Use:
    """What the caller does with a name after the call, up to where it is bound anew."""
    if not name:
        return Use.UNSEEN
    if "." in name:
        return Use.KEPT
    use = Use.READ
    for statement in Definitions(site.function).while_bound(name, site.stmt):
        for other in _uses(statement, name):
            if other is Use.KEPT:
                return other
            use = other if other is Use.UNSEEN else use
    return use


def _uses(statement: ir.Stmt, name: str) -> Iterator[Use]:
    if isinstance(statement, ir.Assign) and statement.value is not None:
        for target, value in pairs(statement):
            if any(part.path == name for part in ir.walk(value)):
                above = _read_above(value, name)
                if target.path == name and above is Use.READ:
                    return
                adds = target.path is not None and any(part.path == target.path for part in ir.walk(value))
                if above is None:
                    yield Use.KEPT if adds or isinstance(target, (ir.Attr, ir.Sub)) else Use.UNSEEN
        return
    for root in statement.expressions():
        if any(part.path == name for part in ir.walk(root)) and _read_above(root, name) is None:
            part = next(part for part in ir.walk(root) if part.path == name)
            yield _kept_by(statement, part) or (
                Use.READ if isinstance(statement, (ir.If, ir.While, ir.Check)) else Use.UNSEEN
            )


def _kept_by(statement: ir.Stmt, part: ir.Expr) -> Use | None:
    """Whether a statement adds or appends what it is given."""
    if isinstance(statement, ir.AugAssign) and any(one is part for one in ir.walk(statement.value)):
        return Use.KEPT
    for call in ir.own_calls(statement):
        inside = any(one is part for arg in call.args for one in ir.walk(arg))
        if inside and call.method in ("append", "extend", "appendleft"):
            return Use.KEPT
    return None


def _above(statement: ir.Stmt, wanted: ir.Expr) -> Use | None:
    for root in statement.expressions():
        if _is_read(root, wanted):
            return Use.READ
    return None


def _read_above(root: ir.Expr, name: str) -> Use | None:
    """READ where every use of the name in an expression reads a number of it."""
    uses = [part for part in ir.walk(root) if part.path == name]
    return Use.READ if uses and all(_is_read(root, part) for part in uses) else None


def _is_read(root: ir.Expr, wanted: ir.Expr) -> bool:
    """Whether a part stands inside something that reads a number of it, or writes it."""
    if root is wanted:
        return False
    for child in root.children():
        if any(part is wanted for part in ir.walk(child)):
            return _reads(root) or _is_read(child, wanted)
    return False


def _reads(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.Text):
        return True
    if isinstance(expr, ir.Op):
        return expr.op in ("cmp", "is", "is not", "not", "==", "!=", "<", ">", "in")
    if isinstance(expr, ir.Attr):
        return expr.attr in ("data", "shape", "item", "detach")
    return isinstance(expr, ir.Call) and (
        expr.method in NO_GRAPH
        or expr.method in TO_HOST
        or expr.method in NUMERIC_SINKS
        or expr.method in SINK_METHODS
        or expr.method in ("log", "isnan", "isinf", "isfinite", "float", "int", "append_number")
    )

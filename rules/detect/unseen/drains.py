"""Where a container of tensors ends: it is made one tensor, which is then moved to the host or goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.unseen.sights import Sight

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.loaded import Chain, chain_of, parents_of
from gpulint.analysis.code.reading import is_bound
from gpulint.analysis.file.lookup import called
from gpulint.analysis.torch.names import JOINS, REDUCTIONS
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_HOST = frozenset("cpu numpy tolist".split())
# What is read as ids was ids before: a number for each sample.
_IDS = frozenset("int long bool short byte argmax".split())
_CUTS = frozenset("detach numpy tolist data argmax".split())
_JOINS = JOINS | {"concat", "nested_concat", "pad_sequence"}


@dataclass(frozen=True, slots=True)
class Drain:
    """How a container ends. `elsewhere`: in another method of the object, or with whoever handed the container over;
    not `joined`: its items are only looked at, one by one."""

    at: ir.Expr
    joined: bool
    to_host: bool
    cut: bool = False
    small: bool = False
    elsewhere: bool = False
    on_host: bool = False  # it becomes an array as it is, which torch refuses for what is on a GPU


class Drains:
    """The ends of the containers of one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file

    def of(self, function: ir.Function, holder: ir.Expr, put: Sight) -> Drain | None:
        """The end of a container that a function fills; None where none is seen."""
        if isinstance(holder, ir.Name) and not any(param.name == holder.id for param in function.params):
            inside = {id(s) for loop in put.loops[-1:] for s in ir.statements(loop.body)}
            ends = [*_ends(function, holder.id, inside), *self._handed(function, holder.id, inside)]
            return _best(iter(ends)) or _looked_at(function, holder.id, put, inside)
        if holder.path is None or function.cls is None:
            return None
        found: list[Drain] = []
        for method in function.cls.methods.values():
            if method is not function and method.name not in ("__init__",):
                name = holder.path if isinstance(holder, ir.Attr) else holder.path.partition(".")[0]
                found += _ends(method, name, set(), elsewhere=True)
        return _best(iter(found))

    def _handed(self, function: ir.Function, name: str, inside: set[int]) -> Iterator[Drain]:
        """`return merge(outputs)` of a function in sight, which joins what it is given."""
        for statement, call in ir.calls(function.body):
            if id(statement) in inside or not any(arg.path == name for arg in call.args):
                continue
            callee = called(self._file, function, call)
            if callee is not None and callee is not function:
                for param, arg in bind_sources(callee, call, callee.cls is not None).items():
                    if arg.path == name:
                        yield from _ends(callee, param, set())


def _looked_at(function: ir.Function, name: str, put: Sight, inside: set[int]) -> Drain | None:
    """A loop over the container, after the one that fills it."""
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.For) and id(statement) not in inside and statement not in put.loops:
            if statement.iterable.path == name:
                return Drain(statement.iterable, False, False)
    return None


def _best(drains: Iterator[Drain]) -> Drain | None:
    """The end that says most. Where one moves each item by itself nothing is lost: that is no end at all."""
    return max(drains, key=lambda drain: (drain.to_host, drain.cut, drain.joined), default=None)


def _ends(function: ir.Function, path: str, inside: set[int], elsewhere: bool = False) -> Iterator[Drain]:
    """The joins of a container in a function, under its own name and those of its parts: `for k, v in outs.items()`."""
    names = _names(function, path)
    for statement in ir.statements(function.body):
        if id(statement) in inside:
            continue
        for part in ir.own_parts(statement):
            place = part.base if isinstance(part, ir.Sub) else part
            if place.path not in names or is_bound(statement, part):
                continue
            drain = _end(function, statement, part, chain_of(part, parents_of(statement)), elsewhere)
            if drain is not None:
                yield drain


def _names(function: ir.Function, path: str) -> set[str]:
    found = {path}
    for _ in range(2):
        for statement in ir.statements(function.body):
            if isinstance(statement, ir.For) and _goes_through(statement.iterable) in found:
                last = (
                    statement.target.items[-1] if isinstance(statement.target, ir.Seq) else statement.target
                )
                found |= {last.path} if last.path is not None else set()
            for comp in ir.own_parts(statement):
                for target, iterable, _ in comp.clauses if isinstance(comp, ir.Comp) else ():
                    if _goes_through(iterable) in found:
                        part = target.items[-1] if isinstance(target, ir.Seq) else target
                        found |= {part.path} if part.path is not None else set()
    return found


def _goes_through(iterable: ir.Expr) -> str | None:
    if (
        isinstance(iterable, ir.Call)
        and iterable.method in ("items", "values")
        and isinstance(iterable.func, ir.Attr)
    ):
        return iterable.func.base.path
    return None


def _end(
    function: ir.Function, statement: ir.Stmt, use: ir.Expr, chain: Chain, elsewhere: bool
) -> Drain | None:
    join: ir.Call | None = None
    to_host = cut = small = on_host = False
    for around in chain:
        if join is None:
            if isinstance(around, ir.Call) and around.method in _JOINS and use is not around.func:
                if _is_host_library(around):
                    return None
                join = around
            elif isinstance(around, (ir.Comp, ir.Attr, ir.Call)):
                return None  # taken apart before it is joined
        elif isinstance(around, ir.Call) and isinstance(around.func, ir.Attr):
            on_host |= around.method == "numpy" and not (to_host or around.keywords or _moves(around))
            to_host |= around.method in _HOST or _names_cpu(around)
            cut |= around.method in _CUTS
            small |= around.method in _IDS
            small |= around.method in REDUCTIONS - {"norm"} and not around.args
        elif isinstance(around, ir.Call):
            small |= around.method in REDUCTIONS - {"norm"} and len(around.args) == 1 and not around.keywords
        elif isinstance(around, ir.Attr):
            cut |= around.attr == "data"
    if join is None:
        return None
    name = _bound(statement)
    if name is not None and not to_host:
        later = _later(function, statement, name)
        to_host, cut, on_host = later[0], cut or later[1], later[2]
    return Drain(join, True, to_host, cut or False, small, elsewhere, on_host)


def _is_host_library(call: ir.Call) -> bool:
    return (call.func.path or "").partition(".")[0] in ("np", "numpy", "jnp", "tf", "pd", "os", "itertools")


def _moves(call: ir.Call) -> bool:
    """`x.to(…).numpy()`: moved on the way, wherever to."""
    return any(isinstance(part, ir.Call) and part.method in ("to", "cpu") for part in ir.walk(call.func))


def _names_cpu(call: ir.Call) -> bool:
    return call.method == "to" and any(isinstance(arg, ir.Const) and arg.value == "cpu" for arg in call.args)


def _bound(statement: ir.Stmt) -> str | None:
    if not isinstance(statement, ir.Assign):
        return None
    found = [target.path for target in targets(statement) if target.path is not None]
    return found[0] if len(found) == 1 else None


def _later(function: ir.Function, after: ir.Stmt, name: str) -> tuple[bool, bool, bool]:
    """Whether what was joined goes to the host later, under the name it has got, whether it is cut there, and whether it was on
    the host all along: it becomes an array without being moved."""
    seen = to_host = cut = array = moved = False
    for statement in ir.statements(function.body):
        if statement is after:
            seen = True
        elif seen:
            for call in ir.own_calls(statement):
                if isinstance(call.func, ir.Attr) and _root(call.func) == name:
                    array |= call.method == "numpy" and not (call.keywords or _moves(call))
                    moved |= call.method in ("cpu", "to")
                    to_host |= call.method in _HOST or _names_cpu(call)
                    cut |= call.method in _CUTS
    return to_host, cut, array and not moved


def _root(expr: ir.Expr) -> str | None:
    """`x` of `x.float().cpu`."""
    while True:
        if isinstance(expr, ir.Attr) and isinstance(expr.base, (ir.Call, ir.Attr, ir.Sub)):
            expr = expr.base
        elif isinstance(expr, ir.Call):
            expr = expr.func
        elif isinstance(expr, (ir.Attr, ir.Sub)):
            return expr.base.path
        else:
            return expr.path

"""What becomes of the result of a call within its function, by the text alone: it is read as a number or on the host, shown,
measured, kept, handed on, or gone backward through.

The names that get the result are followed to where the function may still see it, up to where they are bound anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.loaded import Chain, chain_of, parents_of
from gpulint.analysis.code.reading import is_bound
from gpulint.analysis.code.sightlines import seeing
from gpulint.analysis.code.uses import QUESTIONS
from gpulint.analysis.file.calls.effort import kept
from gpulint.analysis.file.evidence import LOSSY
from gpulint.analysis.file.lookup import called_in_project, qualified
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.torch.methods import ADDING
from gpulint.analysis.torch.names import (
    HOST_ATTRS,
    JOINS,
    NUMERIC_SINKS,
    SINK_METHODS,
    TO_DEVICE,
    TO_HOST,
)
from gpulint.analysis.torch.roles import SHOWS
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_READ = (TO_HOST | TO_DEVICE | {"detach_", "cpu", "to_cpu", "to_numpy", "asnumpy", "tonumpy"}) - {
    "size",
    "dim",
}
_CUTS = frozenset("detach detach_ cpu numpy to to_cpu to_numpy".split())
_THROUGH = frozenset(
    "list tuple sorted reversed dict set iter next sum zip enumerate map filter tqdm min max abs".split()
)
# Part of Python: what they give holds what they are given.
_HOLDING = frozenset({"collections", "itertools", "functools"})
_DRAWING = frozenset("torchvision torchaudio soundfile imageio cv2 PIL matplotlib".split())
_MEASURES = re.compile(
    r"(?i)metric|meter|evaluator|accuracy|acc$|bleu|rouge|score[rs]?$|stat|recorder|confusion|auc|map$"
)
_MEASURING = frozenset(
    "update add_batch process add accumulate add_all_values update_state evaluate record".split()
)


@dataclass(slots=True)
class Fate:
    """What is done with a result, each with the first expression that does it."""

    read: ir.Expr | None = None  # as a number, an array, indices, or a tensor without its graph
    shown: ir.Expr | None = None  # drawn, logged, written
    measured: ir.Expr | None = None  # by a metric
    given: ir.Expr | None = None  # to a function that may do anything with it
    kept: ir.Expr | None = None  # in a container of the function's
    by_name: ir.Expr | None = None  # what shows or measures it does so by its name alone
    lossy: ir.Expr | None = None  # a loss is made of it
    stored: bool = False  # on an object
    returned: bool = False
    backward: bool = False
    any: bool = False
    names: set[str] = field(default_factory=set)

    @property
    def goes_on(self) -> bool:
        """Whether somebody out of sight gets it with its graph."""
        return self.returned or self.stored or self.given is not None

    @property
    def only_read(self) -> bool:
        """Whether all that leaves the function are numbers, pictures and measures."""
        read = self.read or self.shown or self.measured
        return read is not None and not self.goes_on and not self.backward


@kept
def fate(file: FileAnalysis, function: ir.Function, call: ir.Call) -> Fate:
    """What the function does with the result of one of its calls."""
    follower = _Follower(file, function, _DEEPEST)
    follower.follow(call)
    return follower.fate


@kept
def _of_name(file: FileAnalysis, function: ir.Function, path: str, deeper: int) -> Fate:
    follower = _Follower(file, function, deeper)
    follower.follow_name(path)
    return follower.fate


_DEEPEST = 2  # functions that a result is followed into


class _Follower:
    def __init__(self, file: FileAnalysis, function: ir.Function, deeper: int) -> None:
        self._file = file
        self._function = function
        self._deeper = deeper
        self.fate = Fate()
        self._queue: list[tuple[str, ir.Stmt | None, bool]] = []  # the last: without its graph
        self._bindings: set[tuple[str, int, bool]] = set()
        self._at: ir.Stmt | None = None  # the statement that is looked at
        self._statements = list(ir.statements(function.body))
        file.effort.draw(len(self._statements))

    def follow(self, call: ir.Call) -> None:
        for statement in self._statements:
            if call in ir.own_calls(statement):
                self._trace(statement, call, chain_of(call, parents_of(statement)))
        self._follow_names()

    def follow_name(self, name: str) -> None:
        """The same of a parameter, or an attribute."""
        self._name(name, None)
        self._follow_names()

    def _follow_names(self) -> None:
        while self._queue:
            name, origin, cut = self._queue.pop()
            # What an attribute holds may have come there in any other method.
            seen = None if "." in name else seeing(self._function.body, name, origin)
            for statement in self._statements:
                if seen is None or id(statement) in seen:
                    self._uses(statement, name, cut)

    def _uses(self, statement: ir.Stmt, name: str, cut: bool) -> None:
        parents: dict[int, ir.Expr] | None = None
        for part in ir.own_parts(statement):
            if part.path == name and isinstance(part, (ir.Name, ir.Attr)) and not is_bound(statement, part):
                parents = parents_of(statement) if parents is None else parents
                chain = chain_of(part, parents)
                if cut:
                    self._look(statement, chain)
                else:
                    self._trace(statement, part, chain)

    def _name(self, name: str, origin: ir.Stmt | None, cut: bool = False) -> None:
        if not cut:
            self.fate.names.add(name)
        if (name, id(origin), cut) not in self._bindings:
            self._bindings.add((name, id(origin), cut))
            self._queue.append((name, origin, cut))

    def _trace(self, statement: ir.Stmt, use: ir.Expr, chain: Chain) -> None:
        self._at = statement
        current = use
        for number, around in enumerate(chain):
            if not self._goes_on(current, around):
                if _is_still_values(around):
                    self._look(statement, chain[number + 1 :])
                return
            current = around
        self._arrive(statement, current)

    def _look(self, statement: ir.Stmt, chain: Chain) -> None:
        """Whether what is left of it without its graph is shown."""
        for around in chain:
            if isinstance(around, ir.Call) and self._shows(around):
                self.fate.shown = self.fate.shown or around
                return
        for target in targets(statement):
            if isinstance(target, ir.Name):
                self._name(target.id, statement, cut=True)

    def _goes_on(self, current: ir.Expr, around: ir.Expr) -> bool:
        if isinstance(around, ir.Attr):
            if around.attr in ("data", "grad_fn") or around.attr in HOST_ATTRS:
                self.fate.read = self.fate.read or (around if around.attr == "data" else None)
                self.fate.any |= around.attr == "data"
                return False
            return True
        if isinstance(around, ir.Sub):
            return around.base is current
        if isinstance(around, ir.Call):
            return self._method(around) if around.func is current else self._argument(current, around)
        if isinstance(around, ir.Op):
            if around.op in QUESTIONS:
                self.fate.any = True
                self.fate.read = self.fate.read or (around if around.op == "cmp" else None)
                return False
            return around.op != "if" or around.operands[0] is not current
        if isinstance(around, ir.Comp):
            return self._comprehension(current, around)
        if isinstance(around, ir.Text):
            self._read(around)
            return False
        return isinstance(around, (ir.Seq, ir.DictDisplay, ir.Wrapper, ir.Walrus))

    def _read(self, by: ir.Expr) -> None:
        self.fate.any = True
        self.fate.read = self.fate.read or by

    def _method(self, call: ir.Call) -> bool:
        name = call.method
        if runs_backward(name):
            self.fate.backward = self.fate.any = True
            return False
        if name in _READ:
            self._read(call)
            return False
        return name not in ("size", "dim")

    def _is_read_inside(self, current: ir.Expr, call: ir.Call) -> bool:
        """Whether a function in sight that is given it only makes numbers and pictures of it, wherever it goes there."""
        if not self._deeper:
            return False
        callee = called_in_project(self._function, call)
        if callee is None or callee is self._function or callee.is_generator:
            return False
        given = bind_sources(callee, call, callee.cls is not None)
        param = next((name for name, value in given.items() if value is current), None)
        if param is None:
            return False
        found = _of_name(callee.home, callee, param, self._deeper - 1)
        if not found.only_read or found.by_name is not None or found.kept or found.lossy or found.backward:
            return False
        self.fate.read = self.fate.read or (call if found.read else None)
        self.fate.shown = self.fate.shown or (call if found.shown else None)
        self.fate.measured = self.fate.measured or (call if found.measured else None)
        return True

    def _argument(self, current: ir.Expr, call: ir.Call) -> bool:
        name, path = call.method, call.func.path
        full = qualified(self._file, self._function, path) or ""
        root = full.partition(".")[0]
        owner = call.func.base if isinstance(call.func, ir.Attr) else None
        if runs_backward(name):
            self.fate.backward = self.fate.any = True
        elif self._is_read_inside(current, call):
            self.fate.any = True
        elif name in NUMERIC_SINKS or root in frameworks.HOST_LIBRARIES - _HOLDING or name in SINK_METHODS:
            self._read(call)
        elif (
            root in _HOLDING
            or root == "torch"
            or full in frameworks.GRAPH_KEEPING
            or name in _THROUGH
            or name in JOINS
        ):
            if name in _READ - {"cpu"}:
                self._read(call)
                return False
            return True
        elif owner is not None and name in ADDING:
            self.fate.any = True
            self.fate.kept = self.fate.kept or call
            self._into(owner)
        elif self._shows(call):
            self.fate.any = True
            if full.partition(".")[0] not in _DRAWING:
                self.fate.by_name = self.fate.by_name or call
            self.fate.shown = self.fate.shown or call
        elif LOSSY.search(name):
            self.fate.lossy = self.fate.lossy or call
            return True
        elif name in _MEASURING or (owner is None and _MEASURES.search(name)):
            self.fate.any = True
            self.fate.by_name = self.fate.by_name or call
            self.fate.measured = self.fate.measured or call
            return not (owner is not None and _MEASURES.search(owner.path or ""))
        elif owner is not None and owner.path is not None and owner.path in self.fate.names:
            return True
        else:
            self.fate.any = True
            self.fate.given = self.fate.given or call
            return True
        return False

    def _shows(self, call: ir.Call) -> bool:
        full = qualified(self._file, self._function, call.func.path)
        return SHOWS.search(call.method) is not None or full in frameworks.DRAWING

    def _into(self, owner: ir.Expr) -> None:
        """The container that takes it: a name of the function's, or a place on an object."""
        while isinstance(owner, ir.Sub):
            owner = owner.base
        if isinstance(owner, ir.Name):
            self._name(owner.id, self._at)
        else:
            self.fate.stored = True

    def _comprehension(self, current: ir.Expr, around: ir.Comp) -> bool:
        for target, iterable, _ in around.clauses:
            if iterable is current:
                names = [part.id for part in ir.walk(target) if isinstance(part, ir.Name)]
                for element in around.elements:
                    for part in ir.walk(element):
                        if (
                            isinstance(part, ir.Call)
                            and part.method in _READ
                            and isinstance(part.func, ir.Attr)
                        ):
                            if any(isinstance(p, ir.Name) and p.id in names for p in ir.walk(part.func)):
                                self._read(part)
                                return False
        return True

    def _arrive(self, statement: ir.Stmt, current: ir.Expr) -> None:
        if isinstance(statement, ir.Return):
            self.fate.returned = self.fate.any = True
        elif isinstance(statement, ir.ExprStmt) and isinstance(current, ir.Wrapper):
            self.fate.returned = self.fate.any = current.kind.startswith("yield")
        elif isinstance(statement, (ir.Assign, ir.For, ir.With)):
            for target in targets(statement):
                self._bind(target)
        elif isinstance(statement, ir.AugAssign):
            self.fate.kept = self.fate.kept or current
            self._bind(statement.target)

    def _bind(self, target: ir.Expr) -> None:
        if isinstance(target, ir.Name):
            self._name(target.id, self._at)
        elif isinstance(target, ir.Attr):
            self.fate.stored = self.fate.any = True
        elif isinstance(target, ir.Sub):
            self.fate.any = True
            self._into(target)


def _is_still_values(expr: ir.Expr) -> bool:
    """Whether what cuts a graph off leaves all the values: a picture may still be made of them."""
    if isinstance(expr, ir.Attr):
        return expr.attr == "data"
    return isinstance(expr, ir.Comp) or (isinstance(expr, ir.Call) and expr.method in _CUTS)

"""Networks that are frozen in name only: `net.requires_grad = False` sets an attribute that nothing reads, because a module
has no switch of that name, and so does `p.require_grad = False`, whatever `p` is. The parameters require grad as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.unseen.sights import sights

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs, targets
from gpulint.analysis.code.reading import unwrapped
from gpulint.analysis.file.lookup import class_made, qualified
from gpulint.analysis.questions.grad.frozen_networks import frozen_where_made
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.names import PARTS_OF_MODELS, SWITCH, SWITCHES_MISSPELT
from gpulint.analysis.torch.roles import NETWORK
from gpulint.analysis.values.values import Grad, Kind
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 4  # of names that stand for one another
_MODULES = frozenset({"children", "modules"})
_NAMED_MODULES = frozenset({"named_children", "named_modules"})
_PARAMETERS = frozenset({"parameters", "named_parameters"})
_WORDS = ("", *_MODULES, *_NAMED_MODULES, *_PARAMETERS)


@dataclass(frozen=True, slots=True)
class IdleFreezing:
    """`net.requires_grad = False`, or a misspelt switch of a network or of its parameters."""

    function: ir.Function
    at: ir.Attr
    answers: tuple[Answer, ...]

    @property
    def is_misspelt(self) -> bool:
        return self.at.attr != SWITCH


def idle_freezings(file: FileAnalysis) -> list[IdleFreezing]:
    """Every statement of the file that freezes nothing, unless it is about something else than a network."""
    found: list[IdleFreezing] = []
    for function in file.module.functions:
        words = file.evidence[function].words
        if SWITCH not in words and words.isdisjoint(SWITCHES_MISSPELT):
            continue
        for statement in ir.statements(function.body):
            for target, value in pairs(statement) if isinstance(statement, ir.Assign) else ():
                if isinstance(target, ir.Attr) and isinstance(value, ir.Const) and value.value is False:
                    if (answers := _answers(file, _Things(file, function, statement), target)) is not None:
                        found.append(IdleFreezing(function, target, answers))
    return found


def _answers(file: FileAnalysis, things: _Things, target: ir.Attr) -> tuple[Answer, ...] | None:
    """What is known of a switch; None where it is none, or one that works, or that a class here has made for itself."""
    misspelt = target.attr in SWITCHES_MISSPELT
    if not (misspelt or target.attr == SWITCH) or _is_known_here(file, target.attr, target.base.path):
        return None
    if things.is_module(target.base):
        is_network = proven(Question.TRAINED, f"a module has no switch `{target.attr}`")
    elif misspelt and things.is_parameter(target.base):
        is_network = proven(Question.TRAINED, f"a parameter has no switch `{target.attr}`")
    elif misspelt and things.may_be_module(target.base):
        is_network = left_open(Question.TRAINED, "only its name says that it is a network")
    else:
        return None
    return is_network, *_reasons(file, things, target)


def _is_known_here(file: FileAnalysis, attr: str, path: str | None) -> bool:
    """Whether a class of the file has a property of this name, something reads what is set, or the switch that works is thrown
    as well: also a tensor has that one, so it is no sign of a module."""
    if any(attr in cls.methods for cls in file.module.classes.values()):
        return True
    if path is not None and any(
        call.func.path == f"{path}.{SWITCH}_"
        for function, evidence in file.evidence.items()
        if f"{SWITCH}_" in evidence.called
        for _, call in ir.calls(function.body)
    ):
        return True
    own = f"{path}.{attr}"
    return any(
        (part.path == own or (attr != SWITCH and isinstance(part, ir.Attr) and part.attr == attr))
        for function in file.module.functions
        if attr in file.evidence[function].words
        for statement in ir.statements(function.body)
        for part in ir.own_parts(statement)
        if not (isinstance(statement, ir.Assign) and part in statement.targets)
    )


def _reasons(file: FileAnalysis, things: _Things, target: ir.Attr) -> Iterator[Answer]:
    """Whether the network is frozen all the same, and whether grad is on where it runs."""
    network = things.whole(target.base)
    name = network.rpartition(".")[2]
    if network and frozen_where_made(file, things.function, network):
        yield refuted(Question.TRAINED, f"`{network}` is frozen all the same")
    modes = _modes_of(file, name) if name else set()
    if modes == {Grad.DISABLED}:
        yield refuted(Question.GRAD, f"`{network}` only runs with grad switched off")
    elif Grad.ENABLED in modes and any(_trains(file, function) for function in file.module.functions):
        yield proven(Question.GRAD, f"`{network}` runs with grad on")
    elif not any(_trains(file, function) for function in file.module.functions):
        yield left_open(
            Question.GRAD, "nothing in the file goes backward or is the forward of a module with grad on"
        )


def _modes_of(file: FileAnalysis, name: str) -> set[Grad]:
    """The grad modes in which the file calls what goes by a name, or a part of it."""
    return {
        sight.grad
        for function, evidence in file.evidence.items()
        if name in evidence.called
        for sight in sights(file, function)
        for call in ir.own_calls(sight.statement)
        if call.method == name
    }


def _trains(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether a function is one of training: it goes backward, or is the forward of a module with grad on."""
    facts = file.facts.get(function)
    if facts is None or file.grad_at_entry(function) is Grad.DISABLED:
        return False
    return facts.has_backward or facts.steps > 0 or facts.role.is_module_forward


class _Things:
    """What expressions are in one statement of a function: modules, what runs through modules, parameters."""

    def __init__(self, file: FileAnalysis, function: ir.Function, at: ir.Stmt) -> None:
        self._file = file
        self.function = function
        self._at = at

    def is_module(self, expr: ir.Expr, depth: int = _DEPTH) -> bool:
        """Whether an expression is a module for certain."""
        expr = unwrapped(expr)
        if isinstance(expr, ir.Call):
            return self._makes_module(expr)
        if isinstance(expr, ir.Sub) and expr.path is None:
            return isinstance(expr.index, ir.Slice) and self.is_module(expr.base, depth)
        if not depth:
            return False
        path = expr.path
        around = list(self._runs(path)) if path is not None else []
        if path is not None and not around and self._is_held(path):
            return True
        if (
            isinstance(expr, ir.Attr)
            and expr.attr in PARTS_OF_MODELS
            and self.is_module(expr.base, depth - 1)
        ):
            return True
        if path is None:
            return False
        given = list(self._bound(path))
        if given:
            return not around and all(self.is_module(value, depth - 1) for value in given)
        return bool(around) and all(self._are_modules(loop, path, depth - 1) for loop in around)

    def is_parameter(self, expr: ir.Expr) -> bool:
        """Whether it is what a loop over the parameters of a network is about."""
        if isinstance(expr, ir.Attr) and expr.attr in ("weight", "bias"):
            return True
        around = list(self._runs(expr.path)) if expr.path is not None else []
        return bool(around) and all(_over(loop, _PARAMETERS) for loop in around)

    def may_be_module(self, expr: ir.Expr) -> bool:
        """Whether it is called like a network, or each of those is that a loop runs through."""
        if expr.path is None:
            return False
        if around := list(self._runs(expr.path)):
            lists = [loop.iterable for loop in around]
            lists = [value for item in lists for value in (list(self._bound(item.path or "")) or [item])]
            return all(
                isinstance(value, ir.Seq)
                and any(NETWORK.search((item.path or "").rpartition(".")[2]) for item in value.items)
                for value in lists
            )
        return bool(NETWORK.search(expr.path.rpartition(".")[2]))

    def whole(self, expr: ir.Expr) -> str:
        """The path of the network that is switched: itself, or what a loop runs through the parts of."""
        path = expr.path or ""
        for loop in self._runs(path):
            parts = [part.path for part in ir.walk(loop.iterable) if isinstance(part, (ir.Name, ir.Attr))]
            owners = [part.removesuffix(f".{word}") for part in parts if part for word in _WORDS]
            known = [owner for owner in owners if self._is_held(owner) or list(self._bound(owner))]
            return known[0] if known else ""
        return path

    def _are_modules(self, loop: ir.For, path: str, depth: int) -> bool:
        """Whether a loop binds a name to modules: `for layer in net.children()`, `for _, layer in net.named_children()`,
        `for layer in list(net.children())[:8]`, `for layer in (self.encoder, self.decoder)`, or in a `Sequential`."""
        if isinstance(loop.target, ir.Seq):
            return (
                bool(loop.target.items) and loop.target.items[-1].path == path and _over(loop, _NAMED_MODULES)
            )
        return self._holds_modules(loop.iterable, depth)

    def _holds_modules(self, expr: ir.Expr, depth: int) -> bool:
        if isinstance(expr, ir.Call):
            if expr.method in _MODULES and not expr.args:
                return True
            if expr.func.path in ("list", "tuple", "reversed") and expr.args:
                return self._holds_modules(expr.args[0], depth)
        if isinstance(expr, ir.Sub) and isinstance(expr.index, ir.Slice):
            return self._holds_modules(expr.base, depth)
        if isinstance(expr, ir.Seq):
            return bool(expr.items) and all(self.is_module(item, depth) for item in expr.items)
        if self.is_module(expr, depth):
            return True
        given = list(self._bound(expr.path)) if expr.path is not None and depth else []
        return bool(given) and all(self._holds_modules(value, depth - 1) for value in given)

    def _makes_module(self, call: ir.Call) -> bool:
        made = class_made(self.function, call)
        if made is not None:
            return made.is_module
        full = qualified(self._file, self.function, call.func.path)
        return full is not None and frameworks.constructor(full) == "module"

    def _is_held(self, path: str) -> bool:
        """Whether the object keeps a module under a path, or the program treats what is there as one."""
        if self._file.treated_as_module(self.function, path):
            return True
        own = self.function.params[0].name if self.function.cls is not None and self.function.params else ""
        root, _, attr = path.partition(".")
        info = self._file.owners.get(self.function.cls) if self.function.cls is not None else None
        value = info.attrs.get(attr) if info is not None and root == own and attr else None
        return value is not None and value.kind is Kind.MODULE

    def _bound(self, path: str) -> Iterator[ir.Expr]:
        for statement in ir.statements(self.function.body):
            for target, value in pairs(statement) if isinstance(statement, ir.Assign) else ():
                if target.path == path:
                    yield value

    def _runs(self, path: str) -> Iterator[ir.For]:
        """The loops around the statement that bind a name."""
        for statement in ir.statements(self.function.body):
            if isinstance(statement, ir.For) and any(target.path == path for target in targets(statement)):
                if any(inner is self._at for inner in ir.statements(statement.body)):
                    yield statement


def _over(loop: ir.For, words: frozenset[str]) -> bool:
    iterable = loop.iterable
    while isinstance(iterable, ir.Sub) or (isinstance(iterable, ir.Call) and iterable.func.path == "list"):
        iterable = iterable.base if isinstance(iterable, ir.Sub) else iterable.args[0]
    return isinstance(iterable, ir.Call) and iterable.method in words

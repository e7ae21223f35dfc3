"""Whether a name keeps what it is bound to while steps run: in its function, in what that calls, or in a caller that is given it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.loaded import lives_through_loop, runs_loader, steps
from gpulint.analysis.file.lookup import called_in_project, class_made, qualified
from gpulint.analysis.questions.device.origins import bindings

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


@dataclass(frozen=True, slots=True)
class Receiver:
    """A caller that binds what a function returns: `name` is the thing asked for there, `others` are what comes with it."""

    function: ir.Function
    stmt: ir.Stmt
    name: str
    others: tuple[str, ...]

    @property
    def keeps(self) -> bool:
        """Whether it holds the thing while steps run."""
        return is_held_through_steps(self.function, self.stmt, self.name)


def is_held_through_steps(function: ir.Function, statement: ir.Stmt, name: str) -> bool:
    """Whether a name still holds what a statement binds to it when steps run: in a loop here, or in what is called."""

    def trains(call: ir.Call) -> bool:
        callee = run_by(function, call)
        if callee is None and _is_of_library_trainer(function, call):
            return True
        loops = ir.statements(callee.body) if callee is not None and callee is not function else ()
        return any(
            isinstance(loop, (ir.For, ir.While)) and (steps(loop) or runs_loader(loop)) for loop in loops
        )

    return lives_through_loop(function, statement, name, trains)


def run_by(function: ir.Function, call: ir.Call) -> ir.Function | None:
    """What a call runs: a function of the project, or a method of an object that the function or the script makes, as in
    `trainer = Trainer(model); trainer.train()`."""
    callee = called_in_project(function, call)
    if callee is not None or not isinstance(call.func, ir.Attr):
        return callee
    for scope in (function, function.home.module.body):
        for made in bindings(scope).get(call.func.base.path or "", ()):
            info = class_made(scope, made) if isinstance(made, ir.Call) else None
            if info is not None:
                return info.method(call.func.attr)
    return None


_TRAINERS_RUNS = frozenset("fit train test predict evaluate".split())


def _is_of_library_trainer(function: ir.Function, call: ir.Call) -> bool:
    """`trainer.fit()`, where `trainer = Trainer(net)` is of a library that goes through all epochs itself."""
    if call.method not in _TRAINERS_RUNS or not isinstance(call.func, ir.Attr):
        return False
    home: FileAnalysis = function.home
    for scope in (function, home.module.body):
        made = bindings(scope).get(call.func.base.path or "", ())
        names = [qualified(home, scope, one.func.path) or "" for one in made if isinstance(one, ir.Call)]
        if names:
            return len(names) == len(made) and all(name.endswith("Trainer") for name in names)
    return False


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
            yield Receiver(caller, statement, target.id, ())
        elif place is not None and len(items) == place[1]:
            mine = items[place[0]].path
            rest = tuple(item.path for k, item in enumerate(items) if k != place[0] and item.path is not None)
            if mine is not None:
                yield Receiver(caller, statement, mine, rest)

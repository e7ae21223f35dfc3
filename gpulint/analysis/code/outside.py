"""Who calls a function from other files of its project, and whether under a guard that switches grad off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpulint.analysis.code import ir
from gpulint.analysis.code.following import main_blocks
from gpulint.analysis.code.reading import unwrapped

# What leaves an object what it is: `Net().to(device).eval()` makes a Net.


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """A call as another file sees it. `on_self_of` is the class whose method calls `self.name()`; None for others."""

    guarded: bool
    on_self_of: str | None
    caller: ir.Function
    call: ir.Call
    namesake: (
        bool  # in a function of the same name, by an attribute: a method that hands on to another class's
    )


@dataclass(slots=True)
class FileCalls:
    """What a file calls, by last name, and how its objects go by: `made` has the names of a class's instances, `renamed`
    the names under which something that has a name is known as well, `handed` what is given to calls, each with what is called
    and the place of the argument, a number or a keyword. `methods` are those of
    its classes, by name. All names are last names, but those of `imports`, which has what they stand for. `off_in_program`:
    where the file is the program, it switches grad off before anything else."""

    calls: dict[str, list[OutsideCall]] = field(default_factory=dict)
    made: dict[str, set[str]] = field(default_factory=dict)
    renamed: dict[str, set[str]] = field(default_factory=dict)
    handed: dict[str, set[tuple[str, int | str]]] = field(default_factory=dict)
    methods: dict[str, list[ir.Function]] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    off_in_program: bool = False


def outside_calls(module: ir.Module, guards: frozenset[str]) -> FileCalls:
    """The calls of a module by last name.

    `guards` holds the last names of context managers and decorators that switch grad off.
    """
    found = FileCalls(imports=module.imports, off_in_program=_begins_switched_off(module, guards))
    modes = [mode for statement in module.body.body if (mode := switched(statement)) is not None]
    off = bool(modes) and not any(modes)  # for the process, before any function runs
    for function in module.functions:
        if function.cls is not None and function.name != "<lambda>":
            found.methods.setdefault(function.name, []).append(function)
        decorated = any(_last(item) in guards for item in function.decorators)
        decorated |= off and function is not module.body
        switches = guards | _contexts(function, guards)
        _note_calls(function, function.body, switches, decorated, found.calls)
        for statement in ir.statements(function.body):
            _note_names(statement, found)
    return found


def _begins_switched_off(module: ir.Module, guards: frozenset[str]) -> bool:
    """Whether what a file does as a program begins with grad switched off for good: in its `if __name__ == "__main__":`, or in
    each of its functions that are called there."""
    block = main_blocks(module)
    if _switches_first(block, guards):
        return True
    called = {call.func.path for _, call in ir.calls(block)}
    begun = [one for one in module.functions if one.parent is module.body and one.name in called]
    again = any(switched(statement) for one in module.functions for statement in ir.statements(one.body))
    return bool(begun) and not again and all(_switches_first(one.body, guards) for one in begun)


def _switches_first(block: list[ir.Stmt], guards: frozenset[str]) -> bool:
    """Whether a block switches grad off for good before any loop or other block of statements."""
    for statement in block:
        if switched(statement) is False or _entered(statement, guards):
            return True
        if isinstance(statement, (ir.For, ir.While, ir.With, ir.Try)):
            return False
    return False


def switched(statement: ir.Stmt) -> bool | None:
    """What `torch.set_grad_enabled(…)` outside a `with` sets grad to from here on; None for any other statement, and where
    it may only switch it off: `frozen and torch.set_grad_enabled(False)`."""
    calls = switches(statement)
    if not calls or not (is_certain(statement, calls[0]) or any(map(_mode, calls))):
        return None
    return any(map(_mode, calls))


def switches(statement: ir.Stmt) -> list[ir.Call]:
    """The calls `set_grad_enabled(…)` that a statement leaves in force."""
    named = (call for call in ir.own_calls(statement) if call.method == "set_grad_enabled")
    return [call for call in named if acts_at_once(statement, call)]


def is_certain(statement: ir.Stmt, call: ir.Call) -> bool:
    """Whether a statement makes a call whatever happens: it is all that the statement does, or all that it binds."""
    return isinstance(statement, (ir.ExprStmt, ir.Assign)) and statement.value is call


def acts_at_once(statement: ir.Stmt | None, call: ir.Call) -> bool:
    """Whether `set_grad_enabled(…)` stays in force after its statement, be its value thrown away, chosen or bound: torch sets
    grad when the call is made. A `with` takes it back, and so does what is decorated: `set_grad_enabled(False)(function)`."""
    if statement is None or isinstance(statement, ir.With):
        return False
    return not any(around.func is call for around in ir.own_calls(statement))


def _mode(call: ir.Call) -> bool:
    mode = call.argument(0, "mode")
    return mode.value if isinstance(mode, ir.Const) and isinstance(mode.value, bool) else True


def _contexts(function: ir.Function, guards: frozenset[str]) -> frozenset[str]:
    """The names that a function binds to a guard, be it under a condition: `context = no_grad() if frozen else nullcontext()`."""
    return frozenset(
        target.id
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and statement.value is not None
        if _switches(statement.value, guards)
        for target in statement.targets
        if isinstance(target, ir.Name)
    )


def _switches(expr: ir.Expr, guards: frozenset[str]) -> bool:
    """Whether an expression has a guard in it. Which of two contexts is entered, and what grad is set to, is then the
    caller's care."""
    for part in ir.walk(expr):
        if isinstance(part, ir.Call) and part.method == "set_grad_enabled":
            mode = part.argument(0, "mode")
            if not (isinstance(mode, ir.Const) and mode.value is True):
                return True
        elif _last(part) in guards:
            return True
    return False


def _entered(statement: ir.Stmt, guards: frozenset[str]) -> bool:
    """`stack.enter_context(torch.no_grad())`, `torch.no_grad().__enter__()`: off for the rest of the block."""
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    if not isinstance(call, ir.Call):
        return False
    if call.method == "__enter__" and isinstance(call.func, ir.Attr):
        return _switches(call.func.base, guards)
    return call.method == "enter_context" and any(_switches(arg, guards) for arg in call.args)


def _note_calls(
    function: ir.Function,
    block: list[ir.Stmt],
    guards: frozenset[str],
    decorated: bool,
    found: dict[str, list[OutsideCall]],
) -> None:
    off = False  # by a bare `set_grad_enabled(False)` before, in this block
    for statement in block:
        mode = switched(statement)
        off = (off if mode is None else not mode) or _entered(statement, guards)
        inside = decorated or off
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Call):
                own = _class_of_self(function, part.func)
                namesake = part.method == function.name and isinstance(part.func, ir.Attr)
                call = OutsideCall(inside, own, function, part, namesake)
                found.setdefault(part.method, []).append(call)
        covered = inside
        if isinstance(statement, ir.With):
            covered = inside or any(_switches(item, guards) for item, _ in statement.items)
        for inner in statement.blocks():
            _note_calls(function, inner, guards, covered, found)


def _class_of_self(function: ir.Function, callee: ir.Expr) -> str | None:
    """The class around a function that calls its own first parameter, or a method of it."""
    if function.cls is None or not function.params:
        return None
    owner = callee.base if isinstance(callee, ir.Attr) else callee
    return function.cls.name if owner.path == function.params[0].name else None


def _note_names(statement: ir.Stmt, found: FileCalls) -> None:
    for name, value in _bound(statement):
        value = unwrapped(value)
        if isinstance(value, ir.Call):
            found.made.setdefault(value.method, set()).add(name)
        elif value.path is not None and value.path.rpartition(".")[2] != name:
            found.renamed.setdefault(value.path.rpartition(".")[2], set()).add(name)
    for call in ir.own_calls(statement):
        for place, arg in (*enumerate(call.args), *call.keywords):
            if arg.path is not None and place is not None:
                found.handed.setdefault(arg.path.rpartition(".")[2], set()).add((call.method, place))


def _bound(statement: ir.Stmt) -> Iterator[tuple[str, ir.Expr]]:
    """Names with what they are given, keyword arguments and what a loop takes out of a list among them."""
    if isinstance(statement, ir.For) and isinstance(statement.iterable, ir.Seq):
        if isinstance(statement.target, ir.Name):
            yield from ((statement.target.id, item) for item in statement.iterable.items)
    if isinstance(statement, ir.Assign) and statement.value is not None:
        for target in statement.targets:
            if target.path is not None:
                yield target.path.rpartition(".")[2], statement.value
    for call in ir.own_calls(statement):
        yield from ((name, value) for name, value in call.keywords if name is not None)


def names_bound(function: ir.Function, call: ir.Call) -> set[str]:
    """The last names that a function binds to what a call makes, where it returns none of them."""
    found = {
        target.path.rpartition(".")[2]
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and statement.value is not None
        if unwrapped(statement.value) is call
        for target in statement.targets
        if target.path is not None
    }
    returned = {
        (part.path or "").rpartition(".")[2]
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Return) and statement.value is not None
        for part in (statement.value, *statement.value.children())
    }
    return found if found.isdisjoint(returned) else set()


def _last(expr: ir.Expr) -> str:
    if isinstance(expr, ir.Call):
        return expr.method
    return expr.attr if isinstance(expr, ir.Attr) else expr.path or ""

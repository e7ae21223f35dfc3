"""Who calls a function from other files of its project, and whether under a guard that switches grad off."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from gpulint.analysis import ir


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """A call as another file sees it. `on_self_of` is the class whose method calls `self.name()`; None for others."""

    guarded: bool
    on_self_of: str | None
    caller: ir.Function


def is_test_file(filename: str) -> bool:
    """Whether a file is one of tests, by its name or its folders."""
    path = PurePath(filename)
    return (
        path.name.startswith("test_")
        or path.name.endswith("_test.py")
        or path.name == "conftest.py"
        or not {"tests", "testing", "test_utils"}.isdisjoint(path.parts)
    )


def outside_calls(module: ir.Module, guards: frozenset[str]) -> dict[str, list[OutsideCall]]:
    """The calls of a module by last name, those left out by which a method hands on to another of its own name.

    `guards` holds the last names of context managers and decorators that switch grad off.
    """
    found: dict[str, list[OutsideCall]] = {}
    for function in module.functions:
        decorated = any(_last(item) in guards for item in function.decorators)
        _note_calls(function, function.body, guards, decorated, found)
    return found


def switched(statement: ir.Stmt) -> bool | None:
    """What a bare `torch.set_grad_enabled(…)` sets grad to from here on; None for any other statement."""
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    if not isinstance(call, ir.Call) or call.method != "set_grad_enabled":
        return None
    mode = call.argument(0, "mode")
    return mode.value if isinstance(mode, ir.Const) and isinstance(mode.value, bool) else True


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
        off = off if mode is None else not mode
        inside = decorated or off
        for root in statement.expressions():
            for part in ir.walk(root):
                if isinstance(part, ir.Call) and not (
                    part.method == function.name and isinstance(part.func, ir.Attr)
                ):
                    call = OutsideCall(inside, _class_of_self(function, part.func), function)
                    found.setdefault(part.method, []).append(call)
        covered = inside
        if isinstance(statement, ir.With):
            covered = inside or any(_last(item) in guards for item, _ in statement.items)
        for inner in statement.blocks():
            _note_calls(function, inner, guards, covered, found)


def _class_of_self(function: ir.Function, callee: ir.Expr) -> str | None:
    """The class around a function that calls a method of its own first parameter."""
    if function.cls is None or not function.params or not isinstance(callee, ir.Attr):
        return None
    return function.cls.name if callee.base.path == function.params[0].name else None


def _last(expr: ir.Expr) -> str:
    if isinstance(expr, ir.Call):
        return expr.method
    return expr.attr if isinstance(expr, ir.Attr) else expr.path or ""

"""Where a program sets the allocator's environment variable, and to what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import constant, qualified
from gpulint.analysis.torch.allocator import parts

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

VARIABLES: Final = frozenset({"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"})
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_SETTERS = frozenset({"setdefault", "putenv", "setenv", "__setitem__"})
_DIRECT = frozenset({"_set_allocator_settings", "_accelerator_setAllocatorSettings"})


@dataclass(slots=True)
class Setting:
    """An allocator setting, or the choice of visible devices, put into the environment.

    `text` has `{}` for what only a run can tell and is None where nothing is known; `spelled` is the expression that
    holds it. `own` says that this process's own environment is meant.
    """

    function: ir.Function
    stmt: ir.Stmt
    variable: str
    value: ir.Expr
    own: bool
    text: str | None = None
    spelled: ir.Expr | None = None


def settings(file: FileAnalysis) -> list[Setting]:
    """Every place of a file where one of the variables is set."""
    found: list[Setting] = []
    for function, evidence in file.evidence.items():
        if VARIABLES & evidence.strings or VISIBLE in evidence.strings or _DIRECT & evidence.words:
            for statement in ir.statements(function.body):
                for setting in _in_statement(file, function, statement):
                    spelled = constant(file, function, setting.value)
                    if spelled is not None:
                        setting.text, setting.spelled = spelled
                    found.append(setting)
    return found


def _in_statement(file: FileAnalysis, function: ir.Function, statement: ir.Stmt) -> Iterator[Setting]:
    if isinstance(statement, ir.Assign) and statement.value is not None:
        for target in statement.targets:
            if isinstance(target, ir.Sub) and (name := _variable(target.index)) is not None:
                own = _is_environ(file, function, target.base)
                yield Setting(function, statement, name, statement.value, own)
    for expr in ir.own_parts(statement):
        if isinstance(expr, ir.Call):
            yield from _in_call(file, function, statement, expr)
        elif isinstance(expr, ir.DictDisplay):
            for key, value in expr.pairs:
                if key is not None and (name := _variable(key)) is not None:
                    own = _updates_environ(file, function, statement, expr)
                    yield Setting(function, statement, name, value, own)


def _in_call(
    file: FileAnalysis, function: ir.Function, statement: ir.Stmt, call: ir.Call
) -> Iterator[Setting]:
    if call.method in _SETTERS and len(call.args) == 2 and (name := _variable(call.args[0])) is not None:
        base = call.func.base if isinstance(call.func, ir.Attr) else call.func
        own = call.method == "putenv" or _is_environ(file, function, base)
        yield Setting(function, statement, name, call.args[1], own)
    elif call.method in _DIRECT and call.args:
        yield Setting(function, statement, "PYTORCH_CUDA_ALLOC_CONF", call.args[0], False)
    for key, value in call.keywords:
        if key in VARIABLES or key == VISIBLE:
            own = call.method == "update" and isinstance(call.func, ir.Attr)
            own = own and _is_environ(file, function, call.func.base)  # type: ignore[attr-defined]
            yield Setting(function, statement, key or "", value, own)


def _variable(expr: ir.Expr) -> str | None:
    value = expr.value if isinstance(expr, ir.Const) else None
    return value if isinstance(value, str) and (value in VARIABLES or value == VISIBLE) else None


def _is_environ(file: FileAnalysis, function: ir.Function, expr: ir.Expr) -> bool:
    return qualified(file, function, expr.path) == "os.environ"


def _updates_environ(
    file: FileAnalysis, function: ir.Function, statement: ir.Stmt, display: ir.DictDisplay
) -> bool:
    """`os.environ.update({…})`, `os.environ |= {…}`."""
    if isinstance(statement, ir.AugAssign):
        return statement.value is display and _is_environ(file, function, statement.target)
    if not isinstance(statement, ir.ExprStmt) or not isinstance(statement.value, ir.Call):
        return False
    call = statement.value
    return (
        call.method == "update"
        and isinstance(call.func, ir.Attr)
        and display in call.args
        and _is_environ(file, function, call.func.base)
    )


# --- what a setting says -------------------------------------------------------------------------------------------


def option_names(text: str | None) -> tuple[str, ...]:
    """The names of the options in a setting, as far as they are known."""
    return tuple(part.partition(":")[0].strip() for part in parts(text or "") if ":" in part)


def target_version(text: object) -> tuple[int, int] | None:
    """(2, 4) of the option's text "2.4"; None where none is given."""
    found = re.match(r"(\d+)\.(\d+)", str(text or ""))
    return None if found is None else (int(found[1]), int(found[2]))

"""Modules that are frozen by their own class: an argument of the constructor says whether the parameters require grad."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo


def is_made_frozen(info: ClassInfo, call: ir.Call | None) -> bool:
    """Whether the constructor freezes every parameter of a module, as it is called here; without a call, as its defaults
    say. A method of the class that thaws them leaves that to who calls it."""
    for one in info.ancestors():
        init = one.cls.methods.get("__init__")
        if init is None:
            continue
        covering = [value for method in _run_by(one, init) for value in _of_all_parameters(method)]
        if covering:
            settled = all(_is_off(value, init, call if one is info else None) for value in covering)
            others = (m for m in one.cls.methods.values() if m not in _run_by(one, init))
            return settled and not any(list(_of_all_parameters(method)) for method in others)
    return False


def decided_by_argument(info: ClassInfo) -> str:
    """The argument of the constructor that is False unless somebody gives it, and says whether some parameters require
    grad; empty where there is none."""
    for one in info.ancestors():
        init = one.cls.methods.get("__init__")
        for param in init.params if init is not None else ():
            if not (isinstance(param.default, ir.Const) and param.default.value is False):
                continue
            places = {param.name} | _attributes_of(init, param.name)
            values = (value for method in one.cls.methods.values() for value in _requirements(method))
            if any(value.path in places for value in values):
                return param.name
    return ""


def _run_by(info: ClassInfo, init: ir.Function) -> list[ir.Function]:
    """The constructor, and the methods of the class that it calls."""
    called = {call.method for _, call in ir.calls(init.body) if (call.func.path or "").startswith("self.")}
    return [init, *(method for name, method in info.cls.methods.items() if name in called)]


def _of_all_parameters(method: ir.Function) -> Iterator[ir.Expr]:
    """What a method sets `requires_grad` to for all the parameters of its object."""
    own = method.params[0].name if method.params else "self"
    for statement in method.body:
        if isinstance(statement, ir.For) and _iterates_all(statement.iterable, own):
            yield from _set_to(statement.body)
        elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            call = statement.value
            if call.func.path == f"{own}.requires_grad_":
                yield call.argument(0, "requires_grad") or ir.Const(call.origin, True)


def _iterates_all(iterable: ir.Expr, own: str) -> bool:
    return isinstance(iterable, ir.Call) and iterable.func.path in (
        f"{own}.parameters",
        f"{own}.named_parameters",
    )


def _set_to(block: list[ir.Stmt]) -> Iterator[ir.Expr]:
    """What a block, conditions in it left out, sets a `requires_grad` to."""
    for statement in block:
        if isinstance(statement, ir.Assign) and statement.value is not None:
            if any(isinstance(t, ir.Attr) and t.attr == "requires_grad" for t in statement.targets):
                yield statement.value
        elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            call = statement.value
            if call.method == "requires_grad_":
                yield call.argument(0, "requires_grad") or ir.Const(call.origin, True)


def _is_off(value: ir.Expr, init: ir.Function, call: ir.Call | None) -> bool:
    """Whether a value is False: by itself, or as the constructor's argument that the call gives or leaves out."""
    if isinstance(value, ir.Name):
        param = next((param for param in init.params if param.name == value.id), None)
        if param is None:
            return False
        given = bind_sources(init, call, True).get(value.id) if call is not None else None
        value = given if given is not None else param.default or value
    return isinstance(value, ir.Const) and value.value is False


def _attributes_of(init: ir.Function | None, name: str) -> set[str]:
    """`self.trainable` of `self.trainable = trainable`."""
    return {
        target.path
        for statement in (ir.statements(init.body) if init is not None else ())
        if isinstance(statement, ir.Assign) and statement.value is not None and statement.value.path == name
        for target in statement.targets
        if target.path is not None
    }


def _requirements(method: ir.Function) -> Iterator[ir.Expr]:
    """Everything that a method gives for a `requires_grad`."""
    for statement in ir.statements(method.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            if any(isinstance(t, ir.Attr) and t.attr == "requires_grad" for t in statement.targets):
                yield statement.value
        for call in ir.own_calls(statement):
            value = call.keyword("requires_grad")
            if call.method == "requires_grad_":
                value = call.argument(0, "requires_grad")
            if value is not None:
                yield value

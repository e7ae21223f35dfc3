"""What a method of a base class does by way of the methods that the class of the object has in the place of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.gradmode import of_call
from gpulint.analysis.values.values import Grad

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo
    from gpulint.analysis.file.program import FileAnalysis


def stored_without_grad(info: ClassInfo, function: ir.Function, depth: int = 2) -> frozenset[str]:
    """The attributes that an object of the class has set with grad off, once a method has run: `self.fake` where `forward`
    stores it, and `test` runs `self.forward()` under no_grad."""
    home: FileAnalysis = function.home
    if not home.guards_itself(function) or not function.params:
        return frozenset()
    own = function.params[0].name
    found: set[str] = set()
    for block in [function.body] if home.switches_grad_off(function) else _guarded(home, function):
        for _, call in ir.calls(block):
            method = info.method(call.method) if call.func.path == f"{own}.{call.method}" else None
            if method is not None and method is not function:
                found |= _stores(info, method, depth)
    return frozenset(found)


def _guarded(home: FileAnalysis, function: ir.Function) -> list[list[ir.Stmt]]:
    """The bodies of `with torch.no_grad():`."""
    return [
        statement.body
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.With)
        and any(
            isinstance(item, ir.Call)
            and item.func.path is not None
            and of_call(home.names.qualify(item.func.path), item) is Grad.DISABLED
            for item, _ in statement.items
        )
    ]


def _stores(info: ClassInfo, method: ir.Function, depth: int) -> set[str]:
    """The attributes that a method sets, or the methods of the object that it calls."""
    if not method.params:
        return set()
    own = f"{method.params[0].name}."
    evidence = method.home.evidence[method]
    found = {
        path.removeprefix(own) for path in evidence.stored if path.startswith(own) and path.count(".") == 1
    }
    for name in evidence.called if depth else ():
        further = info.method(name)
        if further is not None and further is not method:
            found |= _stores(info, further, depth - 1)
    return found

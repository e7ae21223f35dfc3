"""Where the names of a function come from: a parameter, an attribute of the object, something made on the spot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.torch.holders import HOLDS_NETWORKS

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def own_name(function: ir.Function) -> str:
    """`self`, as the method around the function calls it; empty where there is none."""
    method = function.method
    if method is None or not method.params:
        return ""
    return (
        ""
        if any(decorator.path == "staticmethod" for decorator in method.decorators)
        else method.params[0].name
    )


def owner_of(function: ir.Function) -> ir.Class | None:
    """The class whose method the function is, or is defined in."""
    method = function.method
    return None if method is None else method.cls


# What gives parts of what it is given.
_OF_PARTS = frozenset("dict list tuple getattr enumerate zip reversed sorted next iter filter set".split())


def roots(function: ir.Function, expr: ir.Expr) -> set[str]:
    """The parameters and the object's own attributes (`self.model`) that an expression is a part of, through loops and
    assignments of the function. What a call makes of its arguments is something new."""
    own = own_name(function)
    given = {param.name for param in function.params if param.name != own}
    found: set[str] = set()
    seen: set[str] = set()
    queue = [expr]
    while queue:
        part = queue.pop()
        if isinstance(part, ir.Attr) and isinstance(part.base, ir.Name) and own and part.base.id == own:
            found.add(f"{own}.{part.attr}")
        elif isinstance(part, (ir.Attr, ir.Sub)):
            queue.append(part.base)
        elif isinstance(part, ir.Wrapper):
            queue.append(part.value)
        elif isinstance(part, ir.Call):
            queue += _receivers(part)
        elif isinstance(part, ir.Seq):
            queue += part.items
        elif isinstance(part, ir.Comp):
            queue += (iterable for _, iterable, _ in part.clauses)
        elif isinstance(part, ir.Name) and part.id not in seen:
            seen.add(part.id)
            found |= {part.id} & given
            queue += _values(function, part.id)
    return found


def _receivers(call: ir.Call) -> tuple[ir.Expr, ...]:
    """What the result of a call is a part of: `model` of `model.modules()`, `dict(model.named_modules())`."""
    if isinstance(call.func, ir.Name):
        return call.args if call.func.id in _OF_PARTS else ()
    return (call.func.base,) if isinstance(call.func, ir.Attr) else ()


def _values(function: ir.Function, name: str) -> Iterator[ir.Expr]:
    """What a plain name of the function is bound to; in a loop, what the loop goes through."""
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            if any(target.path == name for target in targets(statement)):
                yield statement.value
        elif isinstance(statement, ir.For):
            if any(target.path == name for target in targets(statement)):
                yield statement.iterable


def comes_from_outside(function: ir.Function, expr: ir.Expr) -> bool:
    """Whether an expression leads back to what the function, or the object by its constructor, was given."""
    own = own_name(function)
    owner = owner_of(function)
    for root in roots(function, expr):
        if "." not in root:
            return True
        if owner is not None and is_given(owner, own, root.partition(".")[2]):
            return True
    return False


def is_given(owner: ir.Class, own: str, attribute: str) -> bool:
    """Whether a method of the class stores one of its parameters under the attribute."""
    for method in owner.methods.values():
        names = {param.name for param in method.params} - {own}
        for statement in ir.statements(method.body):
            if isinstance(statement, ir.Assign) and statement.value is not None:
                if any(target.path == f"{own}.{attribute}" for target in statement.targets):
                    if _is_parameter(statement.value, names):
                        return True
    return False


def _is_parameter(value: ir.Expr, names: set[str]) -> bool:
    """`model`, `model.eval()`, `model.to(device)`, `model.backbone`; `DDP(model)`, where the name says that it is a network."""
    while isinstance(value, (ir.Call, ir.Attr, ir.Sub)):
        if not isinstance(value, ir.Call):
            value = value.base
            continue
        for argument in value.args[:1]:
            if isinstance(argument, ir.Name) and argument.id in names and HOLDS_NETWORKS.search(argument.id):
                return True
        if not isinstance(value.func, ir.Attr):
            return False
        value = value.func.base
    return isinstance(value, ir.Name) and value.id in names


def scope(file: FileAnalysis, function: ir.Function) -> list[ir.Function]:
    """The functions that share the object or the local names of one: the methods of its class with what is defined in
    them, or, of a plain function, what is defined in it."""
    owner = owner_of(function)
    if owner is None:
        top = function
        while top.parent is not None and top.parent is not file.module.body:
            top = top.parent
        return [other for other in file.module.functions if other.is_within(top)]
    return [other for other in file.module.functions if owner_of(other) is owner]

"""Networks out of sight that may switch grad off by themselves, by what is known of them: how they are called, what they
are given, and what the project's methods of that name do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.reaching import fits

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis

_COMMON = 8  # files that define a method of one name: no one knows which is meant


def knows_another_way(forward: Forward) -> bool:
    """`self.q.no_grad(x)` in a method beside the one that calls `self.q(x)`: the object offers both, and its user chose."""
    own = forward.function.cls
    methods = own.methods.values() if own is not None else (forward.function,)
    path = forward.module.path.removesuffix(".forward")
    return any(
        call.method in ("no_grad", "inference_mode")
        and (call.args or call.keywords)
        and isinstance(call.func, ir.Attr)
        and call.func.base.path == path
        for method in methods
        for _, call in ir.calls(method.body)
    )


def guards_by_name(file: FileAnalysis, forward: Forward) -> bool:
    """Whether a method of a network out of sight can only be one with a guard in it: so are all methods of the project that
    the call fits, those left out that hand on to another of their own name."""
    call, project = forward.call, file.project
    if forward.module.network is not None or project is None or not isinstance(call.func, ir.Attr):
        return False
    if call.method in ("forward", "__call__") or call.func.base.path is None:
        return False
    if call.func.base.path.partition(".")[0] in file.module.imports:
        return False
    if not project.files_defining(file.filename, call.method, b"no_grad"):
        return False  # the common case, without a look at all the others
    others = project.files_defining(file.filename, call.method, b"")
    found = [
        function
        for other in others
        for function in other.module.functions
        if function.name == call.method and function.cls is not None and fits(function, call)
        if call.method not in other.evidence[function].called
    ]
    return len(found) > 0 and len(others) < _COMMON and all(f.home.guards_itself(f) for f in found)


def is_list_of_things(function: ir.Function, arg: ir.Expr) -> bool:
    """Whether a name is a list that the function fills with dicts or objects of its own making: what takes that is a wrapper,
    which does everything by itself."""
    if not isinstance(arg, ir.Name):
        return False
    made: dict[str, list[ir.Expr]] = {}
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target in targets(statement):
                if isinstance(target, ir.Name):
                    made.setdefault(target.id, []).append(statement.value)
        elif isinstance(statement, (ir.For, ir.With)):
            for target in targets(statement):
                if isinstance(target, ir.Name):
                    made.setdefault(target.id, []).append(ir.Name(target.origin, ""))
    values = made.get(arg.id, [])
    if not values or not all(isinstance(value, ir.Seq) and not value.items for value in values):
        return False
    added = [
        call.args[0]
        for _, call in ir.calls(function.body)
        if call.method == "append" and isinstance(call.func, ir.Attr) and len(call.args) == 1
        if call.func.base.path == arg.id
    ]
    return bool(added) and all(
        isinstance(item, ir.DictDisplay)
        or (
            isinstance(item, ir.Name)
            and bool(made.get(item.id))
            and (all(_is_dict(value) for value in made[item.id]) or _is_filled(function, item.id))
        )
        for item in added
    )


def _is_dict(value: ir.Expr) -> bool:
    return isinstance(value, ir.DictDisplay) or (isinstance(value, ir.Comp) and value.kind == "dict")


def _is_filled(function: ir.Function, name: str) -> bool:
    """`event.x = 1; event.y = 2`: an object with fields, no tensor."""
    fields = {
        target.attr
        for statement in ir.statements(function.body)
        for target in targets(statement)
        if isinstance(target, ir.Attr) and target.base.path == name
    }
    return len(fields - {"data", "grad", "requires_grad"}) > 1

"""Functions in a class that nobody calls on an instance: static methods in all but the decorator."""

from __future__ import annotations

from gpulint.analysis.code import ir


def mark_statics(module: ir.Module) -> None:
    """Take `def evaluate(model, loader)` of a class, called as `Trainer.evaluate(model, loader)`, for a static method.

    Python leaves the word `self` to convention; a class where one method has it, or where anything is called on an
    instance, or handed one as its first argument, says nothing of the kind.
    """
    candidates = {
        (cls.name, function.name): function
        for cls in module.classes.values()
        if all(base.path == "object" for base in cls.bases)
        for function in cls.methods.values()
        if _may_be_static(function)
    }
    if not candidates:
        return
    called: set[tuple[str, str]] = set()
    methods = {name for _, name in candidates}
    doubtful: set[str] = set()
    for function in module.functions:
        own = function.params[0].name if function.cls is not None and _is_self(function) else None
        for _, call in ir.calls(function.body):
            if call.method in methods and isinstance(call.func, ir.Attr):
                owner = call.func.base.path
                handed_self = bool(call.args) and own is not None and call.args[0].path == own
                if owner is None or (owner, call.method) not in candidates or handed_self:
                    doubtful.add(call.method)
                else:
                    called.add((owner, call.method))
    for owner, name in called:
        if name not in doubtful:
            function = candidates[owner, name]
            function.decorators = (ir.Name(function.origin, "staticmethod"),)


def _may_be_static(function: ir.Function) -> bool:
    special = function.name.startswith("__") or bool(function.decorators) or not function.params
    return not special and not _is_self(function)


def _is_self(function: ir.Function) -> bool:
    return bool(function.params) and function.params[0].name in ("self", "cls")

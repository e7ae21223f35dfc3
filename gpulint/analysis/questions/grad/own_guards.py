"""Networks that may switch grad off by themselves, by what is known of them: their class, what they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.questions.reached.dispatch import classes_of
from gpulint.analysis.torch.names import GRAD_SWITCHES
from gpulint.analysis.values.values import Kind
from gpulint.answers import Answer, Question, left_open, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 3  # methods that a method calls


def handed_over(file: FileAnalysis, forward: Forward) -> Answer | None:
    """What the callers of a function say to it that a parameter is run as a network: they hand it objects of a class of the
    project that is none, and what calling such an object gives has no graph. Open, where they may hand something else too."""
    function, called = forward.function, forward.call.func
    if forward.module.network is not None or not isinstance(called, ir.Name):
        return None
    if not any(param.name == called.id for param in function.params):
        return None
    found = classes_of(file, function, called)
    without = {info for info in found if info is not None and not info.is_module and _gives_no_graph(info)}
    if not without:
        return None
    names = " or ".join(f"`{info.cls.name}`" for info in sorted(without, key=lambda info: info.cls.name))
    clause = f"callers hand {names} as `{called.id}`, and calling that gives no graph"
    return (refuted if without == found else left_open)(Question.GRAD, clause)


def _gives_no_graph(info: ClassInfo) -> bool:
    """Whether an object of the class, when called, works without grad or gives numbers and arrays."""
    method = info.method("__call__")
    if method is None:
        return False
    summary = method.home.summary(method)
    gives = summary.returns.kind if summary is not None and summary.returns is not None else None
    return gives in (Kind.HOST, Kind.NUMBER, Kind.DEVICE) or may_guard(info, "__call__", _DEPTH)


def may_guard(info: ClassInfo, name: str, depth: int) -> bool:
    """Whether a method of a network runs its parts where grad may be off: by itself, or in a method that it calls."""
    method = info.method(name)
    if method is None:
        return False
    evidence = method.home.evidence[method]
    if "set_grad_enabled" in evidence.words or method.home.switches_grad_off(method):
        return True
    if evidence.words & GRAD_SWITCHES and _runs_under_guard(method):
        return True
    return depth > 0 and any(
        may_guard(info, called, depth - 1) for called in evidence.called if called != name
    )


def _runs_under_guard(method: ir.Function) -> bool:
    """Whether anything of the object's own is called in a `with torch.no_grad():`, or all that the method does stands there."""
    own = f"{method.params[0].name}." if method.params else "self."
    for statement in ir.statements(method.body):
        if not isinstance(statement, ir.With):
            continue
        words = {
            part.attr if isinstance(part, ir.Attr) else part.path
            for item, _ in statement.items
            for part in ir.walk(item)
            if isinstance(part, (ir.Attr, ir.Name))
        }
        runs = any((c.func.path or "").startswith(own) for _, c in ir.calls(statement.body))
        if words & GRAD_SWITCHES and (runs or statement is method.body[-1]):
            return True
    return False


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

"""Networks that a function makes and uses by itself, and never moves to a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.lookup import class_made
from gpulint.analysis.questions.device.on_host import PLACING
from gpulint.answers import Answer, Question, left_open

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Methods of a network that leave it where it is.
_IN_PLACE = frozenset(
    "eval train load_state_dict state_dict parameters named_parameters modules children zero_grad requires_grad_ "
    "forward apply float".split()
)
_DEFAULTS = frozenset({"set_default_device", "set_default_tensor_type"})


def left_on_host(file: FileAnalysis, function: ir.Function, path: str, network: object) -> Iterator[Answer]:
    """What leaves it open whether a network is on a GPU at all: the function makes it, does nothing with it that could move
    it, and neither does its class."""
    if not path.isidentifier():
        return
    bound = [statement for statement in ir.statements(function.body) if _binds(statement, path)]
    made = [statement for statement in bound if not _binds_none(statement)]
    if not made or not all(map(_is_made, made)):
        return
    makers = [call for statement in made if (call := _maker(statement)) is not None]
    known = [network] if len(made) == 1 else [class_made(function, call) for call in makers]
    classes = [one for one in known if isinstance(one, ClassInfo)]
    if any(map(_is_moved_by_itself, classes)) or not (classes or any(map(_is_of_a_class, makers))):
        return
    if len(classes) < len(made) and file.evidence[function].called & PLACING:
        return  # who makes it may move it, and what it is given is moved here
    if any(evidence.words & _DEFAULTS for evidence in file.evidence.values()):
        return
    if all(
        _leaves_in_place(statement, path)
        for statement in ir.statements(function.body)
        if statement not in bound
    ):
        yield left_open(Question.DEVICE, f"nothing in `{function.name}` puts `{path}` on a GPU", made[0])


def _binds(statement: ir.Stmt, path: str) -> bool:
    return any(target.path == path for target in targets(statement))


def _binds_none(statement: ir.Stmt) -> bool:
    """`net = None`, before a branch makes it."""
    return isinstance(statement, ir.Assign) and _is_none(statement.value)


def _is_none(expr: ir.Expr | None) -> bool:
    return isinstance(expr, ir.Const) and expr.value is None


def _is_made(statement: ir.Stmt) -> bool:
    """`net = Net(8)`: a call of a class, given nothing that speaks of a device."""
    maker = _maker(statement)
    if maker is None:
        return False
    given = (part for arg in (*maker.args, *(arg for _, arg in maker.keywords)) for part in ir.walk(arg))
    return maker.keyword("device") is None and not any("device" in (part.path or "") for part in given)


def _maker(statement: ir.Stmt) -> ir.Call | None:
    value = statement.value if isinstance(statement, ir.Assign) else None
    return value if isinstance(value, ir.Call) and value.func.path is not None else None


def _is_of_a_class(call: ir.Call) -> bool:
    """`Net(8)`, as names of classes are written."""
    return call.method[:1].isupper()


def _is_moved_by_itself(network: ClassInfo) -> bool:
    methods = (method for one in network.ancestors() for method in one.cls.methods.values())
    return any(
        call.method in PLACING and isinstance(call.func, ir.Attr)
        for method in methods
        for _, call in ir.calls(method.body)
    )


def _leaves_in_place(statement: ir.Stmt, path: str) -> bool:
    """Whether a statement does nothing to the network but run it, or call methods that leave it where it is."""
    harmless: set[int] = set()
    for part in ir.own_parts(statement):
        if isinstance(part, ir.Call):
            func = part.func
            if func.path == path:
                harmless.add(id(func))
            elif isinstance(func, ir.Attr) and func.base.path == path and func.attr in _IN_PLACE:
                harmless.add(id(func.base))
        elif isinstance(part, ir.Op) and (part.op == "not" or any(map(_is_none, part.operands))):
            harmless |= set(map(id, part.operands))  # `if net is not None:`
    if isinstance(statement, (ir.If, ir.While)):
        harmless.add(id(statement.test))
    return all(part.path != path or id(part) in harmless for part in ir.own_parts(statement))

"""Networks that the settings of a program freeze: `encoder.fine_tune(args.fine_tune)`, which is False unless somebody says
otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import unwrapped
from gpulint.analysis.file.calls.effort import kept
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.frozen_classes import required_of, switched_by
from gpulint.analysis.file.lookup import class_made
from gpulint.analysis.questions.grad.frozen_networks import classes_bound, handing
from gpulint.analysis.questions.grad.weights import weighty_parts
from gpulint.analysis.questions.size.built import Scope
from gpulint.analysis.questions.size.constructing import Constructing
from gpulint.answers import Answer, Question, left_open, unweighed

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_CALLERS = 2
_SETTINGS = (ir.Name, ir.Attr, ir.Op)


def frozen_by_settings(
    file: FileAnalysis, function: ir.Function, path: str, depth: int = _CALLERS
) -> Answer | None:
    """What leaves it open whether anything of a network requires grad: who makes it, here or in a caller that hands it over,
    freezes it where a setting is what it is by default; of a part of it, whether what is left is much."""
    path = path.removesuffix(".forward").removesuffix(".module")
    for place, name in _places(file, function, path, depth):
        for at, whole in _freezing(place, name):
            where = (at, "" if place.home is file else place.home.filename)
            if whole:
                return left_open(Question.TRAINED, f"`{path}` is frozen by the program's settings", *where)
            return unweighed(
                Question.TRAINED, f"a part of `{path}` is frozen by the program's settings", *where
            )
    return None


@kept
def _places(
    file: FileAnalysis, function: ir.Function, path: str, depth: int
) -> tuple[tuple[ir.Function, str], ...]:
    """The functions that may make a network, or hand it over, each with the path that it has there."""
    if "." in path:
        return tuple((method, path) for method in (function.cls.methods.values() if function.cls else ()))
    found = {(function, path): None}
    if not depth or all(param.name != path for param in function.params):
        return tuple(found)
    others = file.project.files_calling(file.filename, function) if file.project is not None else ()
    for home in (file, *(others or ())):
        for caller, _, given in handing(home, function, path):
            if given is not None and given.path is not None:
                found.update(dict.fromkeys(_places(home, caller, given.path, depth - 1)))
    return tuple(found)


def _freezing(place: ir.Function, path: str) -> Iterator[tuple[ir.Part, bool]]:
    """What freezes a network by a setting in a function, with whether that is all of it; nothing where something thaws it."""
    classes = [made for made in classes_bound(place.home, place, path) if isinstance(made, ClassInfo)]
    found: list[tuple[ir.Part, bool]] = []
    for statement in ir.statements(place.body):
        if isinstance(statement, ir.If):
            modes = [
                [mode for inner in block for mode in required_of(inner, path)] for block in statement.blocks()
            ]
            chosen = _setting(place, statement.test) if any(modes) else None
            taken = modes[not chosen] if chosen is not None else []
            if taken and not all(map(_is_false, taken)):
                return
            found += [(statement, True)] if taken else []
        made = class_made(place, maker) if (maker := _maker(statement, path)) is not None else None
        asked = [(made, maker, "__init__")] if made is not None and maker is not None else []
        for call in ir.own_calls(statement):
            if isinstance(call.func, ir.Attr) and call.func.base.path == path:
                asked += [(info, call, call.method) for info in classes]
        for info, call, name in asked:
            if switched_by(info, name, call) is None:
                continue
            switched = switched_by(info, name, _settled(place, call))
            if switched is not None and not switched[0]:
                return
            if switched is not None and switched != switched_by(
                info, name, _settled(place, call, turned=True)
            ):
                found.append((call, _is_whole(info, switched[1])))
    yield from found


def _maker(statement: ir.Stmt, path: str) -> ir.Call | None:
    """`Encoder(args.tune)` of `net = Encoder(args.tune).to(device)`."""
    if not isinstance(statement, ir.Assign) or statement.value is None:
        return None
    made = unwrapped(statement.value)
    bound = any(target.path == path for target in statement.targets)
    return made if bound and isinstance(made, ir.Call) else None


def _is_whole(info: ClassInfo, frozen: frozenset[str]) -> bool:
    """Whether the attributes whose parameters are frozen are all that the forward runs, but for single layers."""
    forward = info.method("forward")
    parts = {attr for _, attr in weighty_parts(forward)} if forward is not None else {""}
    return "" in frozen or (bool(parts) and parts <= frozen)


def _settled(place: ir.Function, call: ir.Call, turned: bool = False) -> ir.Call:
    """The call with the truth values that settings are by default in their places, or with what these are not."""

    def settled(expr: ir.Expr) -> ir.Expr:
        value = _setting(place, expr)
        return expr if value is None else ir.Const(expr.origin, value is not turned)

    keywords = tuple((key, settled(value)) for key, value in call.keywords)
    return ir.Call(call.origin, call.func, tuple(map(settled, call.args)), keywords)


def _setting(place: ir.Function, expr: ir.Expr) -> bool | None:
    """What a setting is by default, where that is true or false; None for anything else."""
    value = Constructing().value(expr, Scope(place, {})) if isinstance(expr, _SETTINGS) else None
    return value if isinstance(value, bool) else None


def _is_false(mode: ir.Expr) -> bool:
    return isinstance(mode, ir.Const) and mode.value is False

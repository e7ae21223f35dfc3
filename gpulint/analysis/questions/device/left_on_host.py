"""Networks that a function makes and uses by itself, and never moves to a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.questions.device.on_host import PLACING
from gpulint.analysis.questions.device.origins import device_of_move, is_cpu
from gpulint.answers import Answer, Question, left_open

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Methods of a network that leave it where it is.
_IN_PLACE = frozenset(
    "eval train load_state_dict state_dict parameters named_parameters modules children zero_grad requires_grad_ "
    "forward apply float".split()
)
_DEFAULTS = frozenset({"set_default_device", "set_default_tensor_type"})


def left_on_host(file: FileAnalysis, function: ir.Function, path: str) -> Iterator[Answer]:
    """What leaves it open whether a network is on a GPU at all: the function makes it, in whatever branch, does nothing with it
    that could move it, and neither does what makes it."""
    if not path.isidentifier():
        return
    made = [statement for statement in ir.statements(function.body) if _binds(statement, path)]
    if not made or not all(_is_made_in_place(file, function, statement) for statement in made):
        return
    if any(evidence.words & _DEFAULTS for evidence in file.evidence.values()):
        return
    if any(_moves_somewhere(call) for _, call in ir.calls(function.body)):
        return  # what is moved to a GPU goes into a network that is there
    if all(
        _leaves_in_place(statement, path)
        for statement in ir.statements(function.body)
        if statement not in made
    ):
        yield left_open(Question.DEVICE, f"nothing in `{function.name}` puts `{path}` on a GPU", made[0])


def _binds(statement: ir.Stmt, path: str) -> bool:
    return any(target.path == path for target in targets(statement))


def _is_made_in_place(file: FileAnalysis, function: ir.Function, statement: ir.Stmt) -> bool:
    """`net = Net(8)`, `net = small_net()`: a call of the project's class or function, given nothing that speaks of a device,
    which moves nothing by itself."""
    value = statement.value if isinstance(statement, ir.Assign) else None
    if not isinstance(value, ir.Call) or value.func.path is None:
        return False
    given = (part for arg in (*value.args, *(arg for _, arg in value.keywords)) for part in ir.walk(arg))
    if value.keyword("device") is not None or any("device" in (part.path or "") for part in given):
        return False
    full = file.names.qualify(value.func.path)
    maker = file.imported_value(full) if full is not None else None
    if maker is None and isinstance(value.func, ir.Name):
        maker = file.free_name(function, value.func.id)
    if maker is None or not isinstance(maker.ref, (ClassInfo, ir.Function)):
        return False
    if isinstance(maker.ref, ClassInfo):
        return not _moves_itself(maker.ref)
    return not maker.ref.home.evidence[maker.ref].called & PLACING


def _moves_somewhere(call: ir.Call) -> bool:
    place = device_of_move(call) if call.method == "to" else None
    return call.method == "cuda" or (place is not None and not is_cpu(place, {}))


def _moves_itself(network: ClassInfo) -> bool:
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
    return all(part.path != path or id(part) in harmless for part in ir.own_parts(statement))

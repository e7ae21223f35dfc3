"""Where what is kept may wait for its readers: on the host, where all that they do ends there or nobody is seen to read it.

A copy on the host that is computed with beside tensors of the device raises. So a fix moves only what may wait there, and
leaves the rest on the device, without its graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.questions.outlives.collecting import is_unread
from gpulint.analysis.questions.outlives.piles import judge, uses_of
from gpulint.analysis.torch.names import TO_DEVICE

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Hold
    from gpulint.analysis.file.program import FileAnalysis

_HOST = frozenset({"cpu", "numpy", "tolist", "item"})


def may_wait_on_host(file: FileAnalysis, hold: Hold) -> bool:
    """Whether a copy on the host serves all who read what is held."""
    if hold.place.keep is not None and not _only_keeps(hold.place.keep.function, hold.place.keep.param):
        return False
    if judge(file, hold).idle:
        return True
    known = file.facts.get(hold.function)
    return known is not None and is_unread(known, hold)


def nobody_computes_with(file: FileAnalysis, path: str) -> bool:
    """The same of a container by its path: an attribute, or a name that functions of the file share."""
    name = path.partition("[")[0]
    if "." in name:
        piles = [uses_of(file, None, name.rpartition(".")[2])]
    else:
        sharing = (one for one in file.module.functions if name in file.evidence[one].words)
        piles = [uses_of(file, function, name) for function in sharing]
    return not any(pile.on_device or pile.unseen or pile.host for pile in piles)


def are_tensors(file: FileAnalysis, hold: Hold) -> bool:
    """Whether what is held are tensors, and no tuples or dicts of some: their values are shown, they are added to a number,
    or it shows in what becomes of the container."""
    place = hold.place
    if any(_is_read_as_mapping(hold.function, leaf.path) for leaf in hold.leaves if leaf.path is not None):
        return False
    if hold.are_tensors or (place.keep is None and place.how == "add"):
        return True
    if place.keep is not None or not place.container:
        return False
    return judge(file, hold).tensor or _is_added_up(hold)


def _is_read_as_mapping(function: ir.Function, path: str) -> bool:
    """`losses.values()`, `losses["mask"]`: whatever it is called, it is no tensor."""
    for statement in ir.statements(function.body):
        for part in ir.own_parts(statement):
            if (
                isinstance(part, ir.Attr)
                and part.base.path == path
                and part.attr in ("items", "keys", "values")
            ):
                return True
            if isinstance(part, ir.Sub) and part.base.path == path and isinstance(part.index, ir.Const):
                if isinstance(part.index.value, str):
                    return True
    return False


def _is_added_up(hold: Hold) -> bool:
    """`sum(outputs)`: only numbers and tensors are added to 0."""
    return any(
        call.func.path == "sum" and len(call.args) == 1 and call.args[0].path == hold.place.holder
        for _, call in ir.calls(hold.function.body)
    )


def is_on_host(expr: ir.Expr) -> bool:
    """Whether an expression says that it gives a copy on the host: `x.cpu()`, `x.detach().to("cpu")[0].float()`."""
    while isinstance(expr, (ir.Call, ir.Sub)):
        if isinstance(expr, ir.Sub):
            expr = expr.base
            continue
        if not isinstance(expr.func, ir.Attr):
            return False
        places = (*expr.args, *(value for _, value in expr.keywords))
        if expr.method in _HOST or any(isinstance(one, ir.Const) and one.value == "cpu" for one in places):
            return True
        if expr.method in TO_DEVICE | {"cuda", "to"}:
            return False
        expr = expr.func.base
    return False


def _only_keeps(function: ir.Function, param: str) -> bool:
    """Whether a function does nothing with a parameter but to put it somewhere, once."""
    uses = [
        part
        for statement in ir.statements(function.body)
        for part in ir.own_parts(statement)
        if isinstance(part, ir.Name) and part.id == param
    ]
    return len(uses) == 1

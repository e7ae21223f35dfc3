"""Whether all that is done with what a list collects is to take its data, through which no backward goes."""

from __future__ import annotations

from collections.abc import Iterator

from gpulint.analysis.code import ir
from gpulint.analysis.torch.methods import NO_GRAPH
from gpulint.analysis.torch.names import TO_HOST

_CUTS = NO_GRAPH | TO_HOST | {"detach", "data"}
_HARMLESS = frozenset({"append", "clear", "len"})


def only_data_read(function: ir.Function, holder: str, place: int) -> bool:
    """Whether every use of a local list of tuples takes but the data of what stands at a place in them, and some use does."""
    names: set[str] = set()
    whole: set[str] = {holder}
    cut = False
    for statement in ir.statements(function.body):
        roots = list(statement.expressions())
        if isinstance(statement, ir.Assign) and statement.value is not None:
            target, value = statement.targets[0], statement.value
            if _is_row(value, whole) and isinstance(target, ir.Seq) and place < len(target.items):
                names.add(target.items[place].path or "")
                continue
            if isinstance(target, ir.Name) and _is_it(value, names, whole, place):
                names.add(target.id)
                continue
            if target.path == holder and isinstance(value, ir.Seq) and not value.items:
                continue
        if isinstance(statement, ir.For) and _goes_through(statement.iterable, whole):
            if not isinstance(statement.target, ir.Seq) or place >= len(statement.target.items):
                return False
            names.add(statement.target.items[place].path or "")
            continue
        for root in roots:
            for use in _uses(root, names, whole, place):
                if use is None:
                    return False
                cut |= use
    return cut


def _uses(root: ir.Expr, names: set[str], whole: set[str], place: int) -> Iterator[bool | None]:
    """For each use in an expression: True where its data is taken, False where it is harmless, None for any other."""
    if isinstance(root, ir.Call) and isinstance(root.func, ir.Attr) and root.func.base.path in whole:
        yield False if root.method in _HARMLESS else None
        return
    if isinstance(root, ir.Call) and root.func.path == "len":
        return
    if isinstance(root, ir.Attr) and root.attr in _CUTS and _is_it(root.base, names, whole, place):
        yield True
        return
    if isinstance(root, ir.Comp) and any(_is_columns(iterable, whole) for _, iterable, _ in root.clauses):
        yield True if all(_cuts_all(element) for element in root.elements) else None
        return
    if _is_it(root, names, whole, place) or (isinstance(root, ir.Name) and root.id in whole):
        yield None
        return
    if isinstance(root, ir.Sub) and _is_row(root.base, whole):
        return  # another place of the row
    for child in root.children():
        yield from _uses(child, names, whole, place)


def _is_it(expr: ir.Expr, names: set[str], whole: set[str], place: int) -> bool:
    if isinstance(expr, ir.Name):
        return expr.id in names
    if isinstance(expr, ir.Sub) and _is_row(expr.base, whole):
        return not isinstance(expr.index, ir.Const) or expr.index.value == place
    return False


def _is_row(expr: ir.Expr, whole: set[str]) -> bool:
    """`rollout[i]`."""
    return isinstance(expr, ir.Sub) and expr.base.path in whole and not isinstance(expr.index, ir.Slice)


def _goes_through(iterable: ir.Expr, whole: set[str]) -> bool:
    if isinstance(iterable, ir.Call) and iterable.method in ("reversed", "list") and iterable.args:
        return _goes_through(iterable.args[0], whole)
    return iterable.path in whole


def _is_columns(iterable: ir.Expr, whole: set[str]) -> bool:
    """`zip(*steps)`."""
    return (
        isinstance(iterable, ir.Call)
        and iterable.method == "zip"
        and any(isinstance(arg, ir.Starred) and arg.value.path in whole for arg in iterable.args)
    )


def _cuts_all(element: ir.Expr) -> bool:
    """`torch.stack(column).data`, `torch.stack(column).detach()`."""
    if isinstance(element, ir.Attr):
        return element.attr in _CUTS
    return isinstance(element, ir.Call) and element.method in _CUTS

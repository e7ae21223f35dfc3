"""Whether somebody watches what a loop does: each round waits for a window to be closed, or draws what it has found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_SHOWS = frozenset({"matplotlib.pyplot.show", "pylab.show"})
_DRAWS = frozenset({"matplotlib.pyplot.pause", "cv2.imshow"})


def waits_for_somebody(file: FileAnalysis, loop: ir.For | ir.While) -> bool:
    """Whether each round of a loop opens a window and goes on when somebody closes it. A notebook shows its pictures and goes on."""
    return file.filename.endswith(".py") and _does_always(file, loop, _waits)


def is_watched(file: FileAnalysis, loop: ir.For | ir.While) -> bool:
    """Whether each round draws what it has found on the screen, for somebody who looks on."""
    return waits_for_somebody(file, loop) or _does_always(file, loop, _draws)


def _does_always(
    file: FileAnalysis, loop: ir.For | ir.While, does: Callable[[FileAnalysis, ir.Call], bool]
) -> bool:
    """Whether each round makes such a call, by itself or in a function of the file that it calls."""
    for call in _always(loop.body):
        if does(file, call):
            return True
        own = (
            one for one in file.module.functions if one.name == call.method and one.parent is file.module.body
        )
        if any(does(file, inner) for one in own for inner in _always(one.body)):
            return True
    return False


def _always(block: list[ir.Stmt]) -> Iterator[ir.Call]:
    """The calls of a block that no test decides about, but those of what the block tests."""
    for statement in block:
        yield from ir.own_calls(statement)
        if isinstance(statement, (ir.With, ir.For)):
            yield from _always(statement.body)


def _waits(file: FileAnalysis, call: ir.Call) -> bool:
    if call.method == "draw_geometries":
        return True
    full = file.names.qualify(call.func.path or "")
    if full in _SHOWS:
        return not call.args and not call.keywords
    if full != "cv2.waitKey":
        return False
    return all(isinstance(arg, ir.Const) and arg.value == 0 for arg in call.args) and not call.keywords


def _draws(file: FileAnalysis, call: ir.Call) -> bool:
    return file.names.qualify(call.func.path or "") in _DRAWS

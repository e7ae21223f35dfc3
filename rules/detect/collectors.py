"""Functions that gather what a hook sees, to hand it on: the container is theirs, and the hook goes before they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import FunctionFacts
    from gpulint.analysis.file.program import FileAnalysis


def takes_away(
    file: FileAnalysis, owner: ir.Function, registers: ir.Stmt, hook: ir.Function, holder: str
) -> bool:
    """Whether a function gathers what a hook sees, takes the hook away again and ends: the container is its own."""
    if hook.parent is not owner or owner is file.module.body or holder not in file.evidence[owner].assigned:
        return False
    handles = {target.path for target in targets(registers)} - {None}
    return any(
        call.method == "remove" and isinstance(call.func, ir.Attr) and call.func.base.path in handles
        for _, call in ir.calls(owner.body)
    )


def cuts_up(functions: list[FunctionFacts], function: ir.Function) -> bool:
    """Whether all batches of a function are slices of what is there already: what its layers see is no more than that."""
    loops = [
        loop
        for facts in functions
        if facts.function is function
        for forward in facts.forwards
        for loop in forward.loops
        if loop.over_data
    ]
    iterables = [loop.stmt.iterable if isinstance(loop.stmt, ir.For) else None for loop in loops]
    return bool(loops) and all(isinstance(it, ir.Call) and it.method == "range" for it in iterables)

"""Whose results somebody differentiates in a file, and whether anything in it trains at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file import lookup
from gpulint.analysis.torch.backward import (
    REMOTE,
    api_of,
    asks_for_gradients,
    takes_functions,
)

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def differentiated(file: FileAnalysis) -> frozenset[ir.Function]:
    """The functions of a file of whose results somebody takes gradients by other means than a backward in sight: those
    that differentiate a function, those that are handed to who does, and what these call; all of them where the backward
    comes from another process."""
    if any(name.startswith(REMOTE) for name in file.module.imports.values()):
        return frozenset(file.module.functions)
    found: set[ir.Function] = set()
    for function in file.module.functions:
        for _, call in ir.calls(function.body):
            name = lookup.qualified(file, function, call.func.path)
            if asks_for_gradients(api_of(name)):
                found.add(function)
            if takes_functions(name, call.method):
                found |= _handed(file, call)
    return frozenset(found | _called_by(file, found))


def _handed(file: FileAnalysis, call: ir.Call) -> set[ir.Function]:
    """The functions of the file that a call is given, by name, as a method or within a lambda."""
    given = (*call.args, *(value for _, value in call.keywords))
    parts = [part for arg in given for part in ir.walk(arg)]
    names = {part.attr if isinstance(part, ir.Attr) else part.path for part in parts if part.path is not None}
    inline = {part.function for part in parts if isinstance(part, ir.LambdaExpr)}
    return inline | {function for function in file.module.functions if function.name in names}


def _called_by(file: FileAnalysis, callers: set[ir.Function]) -> set[ir.Function]:
    """The functions of the file that these call, and those that they call."""
    found: set[ir.Function] = set()
    queue = list(callers)
    while queue:
        caller = queue.pop()
        for _, call in ir.calls(caller.body):
            callee = lookup.called(file, caller, call)
            if callee is not None and callee not in found:
                found.add(callee)
                queue.append(callee)
    return found

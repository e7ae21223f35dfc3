"""What a loop goes through that its function was handed inside an object: nobody here sees what graphs come with it."""

from __future__ import annotations

from collections.abc import Iterable

from gpulint.analysis.code import ir
from gpulint.analysis.file.facts import Loop
from gpulint.analysis.questions.device.origins import bindings


def goes_through_fields(function: ir.Function, loops: Iterable[Loop]) -> bool:
    """Whether one of the loops goes through a field of a parameter: `for code in zip(node.codes, …)`, with whatever
    graphs somebody put there. A loader makes its batches afresh."""
    given = {param.name for param in function.params[1 if function.cls is not None else 0 :]}
    iterables = [
        loop.stmt.iterable for loop in loops if isinstance(loop.stmt, ir.For) and not loop.over_loader
    ]
    if not given or not iterables:
        return False
    bound = bindings(function)
    seen: set[str] = set()
    while iterables:
        expr = iterables.pop()
        called = [part.func for part in ir.walk(expr) if isinstance(part, ir.Call)]
        for part in ir.walk(expr):
            if isinstance(part, ir.Name) and part.id not in seen:
                seen.add(part.id)
                iterables += [value for value in bound.get(part.id, ()) if value is not None]
            elif isinstance(part, ir.Attr) and isinstance(part.base, ir.Name) and part.base.id in given:
                if not any(part is func for func in called):
                    return True
    return False

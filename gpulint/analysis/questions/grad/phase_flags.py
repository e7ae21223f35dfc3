"""Functions that train or evaluate by a flag that their callers give as a constant: `self.run(loader, train=False)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import goes_backward
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis


def evaluates_by_flag(file: FileAnalysis, forward: Forward) -> bool:
    """Whether a caller puts the network into eval mode and then switches the backward off by a constant argument."""
    function = forward.function
    flags = dict(_flags_of_backwards(function))
    if not flags or not forward.module.path:
        return False
    for other in file.module.functions:
        if function.name not in file.evidence[other].called or other is function:
            continue
        settled: set[str] = set()
        for statement in ir.statements(other.body):
            for call in ir.own_calls(statement):
                owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
                if call.method == "eval" and owner is not None and not call.args:
                    settled.add(owner)
                elif call.method == "train" and owner is not None:
                    settled.discard(owner)
                elif call.method == function.name and _switches_off(function, call, flags):
                    if _given(function, call, forward.module.path) in settled:
                        return True
    return False


def _flags_of_backwards(function: ir.Function) -> Iterator[tuple[str, bool]]:
    """The parameters that decide whether a backward runs, with the value for which it does."""
    names = {param.name for param in function.params}
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.If):
            test, wanted = statement.test, True
            while isinstance(test, ir.Op) and test.op == "not":
                test, wanted = test.operands[0], not wanted
            if isinstance(test, ir.Name) and test.id in names:
                if goes_backward(statement.body):
                    yield test.id, wanted
                if goes_backward(statement.orelse):
                    yield test.id, not wanted


def _switches_off(function: ir.Function, call: ir.Call, flags: dict[str, bool]) -> bool:
    sources = bind_sources(function, call, function.cls is not None and isinstance(call.func, ir.Attr))
    defaults = {param.name: param.default for param in function.params}
    for flag, wanted in flags.items():
        value = sources.get(flag, defaults.get(flag))
        if isinstance(value, ir.Const) and isinstance(value.value, bool) and value.value is not wanted:
            return True
    return False


def _given(function: ir.Function, call: ir.Call, path: str) -> str | None:
    """What the caller calls the network that the function runs as `path`."""
    root, _, rest = path.partition(".")
    if function.cls is not None and function.params and function.params[0].name == root and rest:
        owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
        return f"{owner}.{rest}" if owner is not None else None
    if not any(param.name == root for param in function.params):
        return path
    source = bind_sources(function, call, function.cls is not None).get(root)
    return f"{source.path}.{rest}" if source is not None and rest else getattr(source, "path", None)

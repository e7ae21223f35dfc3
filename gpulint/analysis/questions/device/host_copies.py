"""Checkpoints that hold copies on the CPU: what `torch.load` brings back from them is on the CPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# The same as `_copies_to_host` sees, in the text of other files.
_COPIES = re.compile(rb"\{[^{}]*\.cpu\(\)[^{}]*\bfor\b[^{}]*\bin\b[^{}]*\.state_dict\(\)\.items\(\)[^{}]*\}")


def host_copies_saved(file: FileAnalysis) -> bool:
    """Whether the program makes `{k: v.cpu() for k, v in net.state_dict().items()}`, as it does to save it."""
    for function, evidence in file.evidence.items():
        if {"state_dict", "cpu"} <= evidence.called:
            for statement in ir.statements(function.body):
                if any(_copies_to_host(part) for part in ir.own_parts(statement)):
                    return True
    return file.project is not None and file.project.contains(file.filename, _COPIES)


def _copies_to_host(expr: ir.Expr) -> bool:
    if not isinstance(expr, ir.Comp) or expr.kind != "dict":
        return False
    states = any(
        isinstance(part, ir.Call) and part.method == "state_dict"
        for _, iterable, _ in expr.clauses
        for part in ir.walk(iterable)
    )
    value = expr.elements[-1]
    while (
        isinstance(value, ir.Call) and value.method in ("clone", "detach") and isinstance(value.func, ir.Attr)
    ):
        value = value.func.base
    return states and isinstance(value, ir.Call) and value.method == "cpu"

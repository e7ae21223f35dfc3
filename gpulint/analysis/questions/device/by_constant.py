"""Files that put everything on the device of one constant of theirs: `device = torch.device("cpu")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import names_only_cpu
from gpulint.analysis.questions.device.origins import bindings, device_of_move, is_cpu

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def everything_on_cpu(file: FileAnalysis) -> bool:
    """Whether a file moves things, all of them to the CPU, and its body names that as the device."""
    if not names_only_cpu(file):
        return False
    top = bindings(file.module.body)
    if not any(is_cpu(value, {}) for values in top.values() for value in values):
        return False
    moved = False
    for function in file.module.functions:
        bound = top | bindings(function)
        for _, call in ir.calls(function.body):
            place = device_of_move(call) if call.method == "to" else None
            if place is not None:
                moved = True
                if not is_cpu(place, bound):
                    return False
    return moved

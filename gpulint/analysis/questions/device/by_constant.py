"""Files that put everything on the device of one constant of theirs, `device = torch.device("cpu")`, and programs that speak of
none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import names_only_cpu
from gpulint.analysis.questions.device.origins import bindings, device_of_move, is_cpu
from gpulint.analysis.questions.reached.outsiders import is_for_others

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_CHOOSES_DEVICE = re.compile(
    rb"(?i:cuda|gpu(?!\d)|device|accelerat|lightning|fabric|ignite|fastai|catalyst|skorch|deepspeed|colossal|parallel|hydra)"
    rb"|Trainer\(|default_tensor_type|\b(?:mps|xpu|npu|hpu)\b"
)


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


def speaks_of_no_device(file: FileAnalysis) -> bool:
    """Whether all of a program is seen, and no file of it speaks of a device, nor of a library that chooses one."""
    project = file.project
    return (
        project is not None
        and project.is_bounded(file.filename)
        and not project.contains(file.filename, _CHOOSES_DEVICE)
        and not is_for_others(file)
    )

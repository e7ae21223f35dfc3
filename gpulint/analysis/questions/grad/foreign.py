"""Functions written for another framework: their tensors have no graphs that torch would know of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_FRAMEWORKS = frozenset(
    {"tensorflow", "jax", "flax", "mindspore", "paddle", "oneflow", "mxnet", "MNN", "tinygrad"}
)

# What torch programs use of another framework: its logs, its data sets, its files.
_BESIDE = frozenset(
    "summary data io gfile compat config logging train distutils app flags python keras experimental datasets".split()
)

# What is said to torch's tensors and optimizers alone.
_OF_TORCH = frozenset("zero_grad cuda no_grad inference_mode detach requires_grad_ load_state_dict".split())


def foreign_functions(file: FileAnalysis) -> frozenset[ir.Function]:
    """The functions that compute with another framework's names and with none of torch's: one backend of several."""
    imports = file.module.imports
    others = {local for local, full in imports.items() if full.partition(".")[0] in _FRAMEWORKS}
    if not others:
        return frozenset()
    torch = {local for local, full in imports.items() if full.partition(".")[0] == "torch"}
    return frozenset(
        function
        for function, evidence in file.evidence.items()
        if function is not file.module.body
        and evidence.words & others
        and not evidence.words & (torch | _OF_TORCH)
        and _computes(function, others)
    )


def _computes(function: ir.Function, names: set[str]) -> bool:
    """Whether one of the framework's names does more in a function than to write logs or to read data."""
    for statement in ir.statements(function.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Call) and part.func.path is not None:
                head, _, rest = part.func.path.partition(".")
                if head in names and rest.partition(".")[0] not in _BESIDE:
                    return True
    return False

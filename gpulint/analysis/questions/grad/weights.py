"""Whether a network has weights that require grad: without them a forward on data builds no graph, whatever the grad mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.frozen_classes import decided_by_argument
from gpulint.analysis.file.weights.parameters import Weights, runs_by_itself, weights_of
from gpulint.analysis.torch import frameworks

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis
# Libraries whose modules have weights that require grad, unless somebody says otherwise.
_WITH_WEIGHTS = (
    "torch.",
    "torchvision.",
    "timm.",
    "transformers.",
    "lightning",
    "pytorch_lightning",
    "fairseq.",
    "mmcv.",
    "mmengine.",
)


def weights_in_doubt(file: FileAnalysis, network: object) -> str:
    """In a clause, why it is not shown that the network has weights that require grad; empty where nothing speaks for that."""
    if not isinstance(network, ClassInfo):
        return frameworks.MAYBE_FROZEN.get(network, "") if isinstance(network, str) else ""
    name = network.cls.name
    argument = decided_by_argument(network)
    if argument and not _is_given(file, name, argument):
        return f"the parameters of `{name}` require grad only where `{argument}` is given"
    if not runs_by_itself(network) or weights_of(network) is Weights.SOME or _is_of_library(network):
        return ""  # in a base class, classes below it make the layers
    if base := _unseen_base(network):
        return f"`{name}` makes no layers itself, and its base `{base}` is not seen"
    return f"no parameter of `{name}` is seen"


def _is_given(file: FileAnalysis, name: str, argument: str) -> bool:
    return any(
        call.method == name and call.keyword(argument) is not None
        for function in file.module.functions
        for _, call in ir.calls(function.body)
    )


def _is_of_library(network: ClassInfo) -> bool:
    """Whether a base is one of torch's or of the well-known libraries of networks, which is more than a module."""
    names = [full for one in network.ancestors() for full in one.base_names]
    return any(
        full.rpartition(".")[2] not in frameworks.PLAIN_BASES
        and (full.rpartition(".")[2] in frameworks.MODULE_BASES or full.startswith(_WITH_WEIGHTS))
        for full in names
    )


def _unseen_base(network: ClassInfo) -> str:
    """A base out of sight; empty where there is none."""
    for one in network.lineage():
        seen = {base.cls.name for base in one.bases} | frameworks.PLAIN_BASES
        for full in one.base_names:
            if full.rpartition(".")[2] not in seen:
                return full.rpartition(".")[2]
    return ""

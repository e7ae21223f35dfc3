"""Whether a network has weights that require grad: without them a forward on data builds no graph, whatever the grad mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo, has_only_buffers
from gpulint.analysis.file.frozen_classes import decided_by_argument
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
        return frameworks.MOSTLY_FROZEN.get(network, "") if isinstance(network, str) else ""
    name = network.cls.name
    argument = decided_by_argument(network)
    if argument and not _is_given(file, name, argument):
        return f"the parameters of `{name}` require grad only where `{argument}` is given"
    if any(has_only_buffers(one.cls) for one in network.ancestors()) and not _has_parts(network):
        return f"`{name}` registers buffers, and no parameter of it is seen"
    base = _unseen_base(network)
    if base and not _makes_layers(network):
        return f"`{name}` makes no layers itself, and its base `{base}` is not seen"
    return ""


def _is_given(file: FileAnalysis, name: str, argument: str) -> bool:
    return any(
        call.method == name and call.keyword(argument) is not None
        for function in file.module.functions
        for _, call in ir.calls(function.body)
    )


def _has_parts(network: ClassInfo) -> bool:
    return any(_makes_layers(one) for one in network.ancestors())


def _makes_layers(network: ClassInfo) -> bool:
    """Whether a method of the class makes something with a class's name, of torch's or of whoever's: `nn.Linear(8, 2)`."""
    return any(
        call.method[:1].isupper()
        and not (call.func.path or "").startswith(("np.", "torch.Tensor", "torch.LongTensor"))
        for method in network.cls.methods.values()
        for _, call in ir.calls(method.body)
        if method.name in ("__init__", "build", "setup")
    )


def _unseen_base(network: ClassInfo) -> str:
    """A base out of sight that is none of torch's or of the well-known libraries of networks."""
    unseen = ""
    for one in network.ancestors():
        seen = {base.cls.name for base in one.bases}
        for full in one.base_names:
            last = full.rpartition(".")[2]
            if last in frameworks.MODULE_BASES or full.startswith(_WITH_WEIGHTS):
                return ""  # an abstract class, whose subclasses make the layers
            if last not in seen:
                unseen = unseen or last
    return unseen

"""Whether a network has weights that require grad: without them a forward on data builds no graph, whatever the grad mode."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.frozen_classes import decided_by_argument, freezing_flag
from gpulint.analysis.file.weights.parameters import Weights, runs_by_itself, weights_of
from gpulint.analysis.torch import frameworks

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Layers behind a network, each by itself.
_SLIGHT = re.compile(r"(?:Linear|Identity|GELU|Softmax|Tanh|Sigmoid|\w*ReLU|\w*(?:Pool|Norm|Dropout)\w*)$")
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


def frozen_by_flag(file: FileAnalysis, function: ir.Function, call: ir.Call) -> str:
    """In a clause, which flag freezes the network that a call runs, where the program sets it somewhere: `self.net(x)` of the
    object itself, or what the only method of that name in the project runs, `model.embed(x)`."""
    if file.project is None or not isinstance(call.func, ir.Attr):
        return ""
    own = function.params[0].name if function.cls is not None and function.params else ""
    if function.cls is not None and call.func.base.path == own:
        parts = [(function.cls, call.method)]
    else:
        named = file.project.methods_named(file.filename, call.method)
        parts = weighty_parts(named[0]) if len(named) == 1 else []
    if len(parts) != 1:
        return ""  # beside what is frozen, something else may be trained
    ((cls, attr),) = parts
    flag = freezing_flag(cls, attr)
    if not flag or not file.project.contains(file.filename, _set_somewhere(flag)):
        return ""
    return f"`{cls.name}` freezes its `{attr}` where `{flag}` is set, as the program does"


def weighty_parts(method: ir.Function) -> list[tuple[ir.Class, str]]:
    """The class of a method with the attributes of its object that it calls, but for methods and single layers that save no
    more than rows."""
    cls, own = method.cls, f"{method.params[0].name}." if method.params else "self."
    init = cls.methods.get("__init__") if cls is not None else None
    if cls is None or init is None:
        return []
    slight = {
        target.path
        for statement in ir.statements(init.body)
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call)
        if _SLIGHT.match(statement.value.method)
        for target in statement.targets
    }
    called = {call.func.path or "" for _, call in ir.calls(method.body)} - slight
    parts = {path.removeprefix(own) for path in called if path.startswith(own)}
    return [(cls, attr) for attr in sorted(parts) if "." not in attr and attr not in cls.methods]


def _set_somewhere(flag: str) -> re.Pattern[bytes]:
    """`freeze: bool = True`, `settings.freeze = True`, `"freeze": True`, `add_argument("--freeze", default=True)`."""
    return re.compile(rb"\b%s\b[^\n]{0,80}[:=][ \t]*[Tt]rue\b" % re.escape(flag.encode()))


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

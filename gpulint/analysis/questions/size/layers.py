"""What a call of a library makes: the layers of torch.nn with their weights, well-known models, and values of tools."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpulint.analysis.code import ir
from gpulint.analysis.questions.size.built import UNKNOWN, Built, Named, Partial, Scope, Unknown
from gpulint.analysis.questions.size.computing import builtin, flat, is_of_kind, of_math
from gpulint.analysis.questions.size.following import Following
from gpulint.analysis.torch import sizes
from gpulint.analysis.torch.keeping import NAMESPACES

_TYPICAL = 512  # what stands for a width that no constant says
_WRAPPERS = frozenset("DataParallel DistributedDataParallel DDP compile convert_sync_batchnorm".split())
_WELL_KNOWN = "a well-known model"
_LAYERS_OF_WELL_KNOWN = 50  # as resnet50 has: of most nothing but the number of weights is known
_OF_WIDTH = re.compile(r"(?i)dim|feat|chan|hidden|width|units|planes")
_OF_DATA = frozenset({"tensor", "Tensor", "FloatTensor"})
_CONTAINERS = frozenset("Sequential ModuleList ModuleDict".split())
# Layers that give each sample one row, whatever the samples are: nothing that grows with pictures or sequences.
_ROWS = frozenset("Linear Bilinear".split())
_TABLES = frozenset("Embedding EmbeddingBag".split())


class Layers(Following):
    """Counts the layers that libraries make."""

    def _library(
        self,
        call: ir.Call,
        full: str,
        positional: list[object],
        given: Mapping[str, object],
        scope: Scope,
    ) -> object:
        last = full.rpartition(".")[2]
        if last in _WRAPPERS:
            return positional[0] if positional else UNKNOWN
        if full.startswith("torch.nn.") and last == "Parameter":
            return self._note(_product(call.args[0] if call.args else None, self, scope), "Parameter")
        if full.startswith("torch.nn.") and "functional" not in full and last[:1].isupper():
            return self._layer(last, positional, given)
        name = positional[0] if positional and isinstance(positional[0], str) else None
        weights = sizes.of_model(full, name)
        if weights is not None:
            return replace(self._note((weights, weights, True), _WELL_KNOWN), known_as=last)
        known = self._tool(full, positional, given)
        if known is not UNKNOWN:
            return known
        if last[:1].isupper() and not sizes.is_weightless(full):
            self.unseen()
        # `spectral_norm(layer)`, `torch.jit.script(net)`
        return positional[0] if positional and isinstance(positional[0], Built) else UNKNOWN

    def _tool(self, full: str, positional: list[object], given: Mapping[str, object]) -> object:
        """What a function that makes no layers of its own gives."""
        root, last = full.partition(".")[0], full.rpartition(".")[2]
        if root in ("math", "numpy"):
            return of_math(last, positional)
        if last in NAMESPACES:
            return {**(positional[0] if positional and isinstance(positional[0], dict) else {}), **given}
        if not positional:
            return UNKNOWN
        first = positional[0]
        if last == "deepcopy":
            for one in flat([first]):
                if isinstance(one, Built):
                    self._total.add(one)
            return first
        if full == "functools.partial":
            return Partial(first, positional[1:], given)
        if full == "itertools.repeat" and len(positional) == 2 and isinstance(positional[1], int):
            return [first] * positional[1]
        if re.fullmatch(r"to_[1-4]tuple", last):  # timm's
            return first if isinstance(first, list) else [first] * int(last[3])
        return first if last == "OrderedDict" else UNKNOWN

    def _layer(self, last: str, positional: list[object], given: Mapping[str, object]) -> Built:
        if last in _CONTAINERS:
            found = Built()
            for item in flat(positional):
                if isinstance(item, Built):
                    found.add(item)
            return found  # its parts were counted when they were made
        if last in ("TransformerEncoder", "TransformerDecoder") and isinstance(positional[:1], list):
            layer = positional[0] if positional else UNKNOWN
            times = positional[1] if len(positional) > 1 else given.get("num_layers")
            if isinstance(layer, Built) and isinstance(times, int) and times > 0:
                self._total.add(layer, times - 1)
                whole = Built()
                whole.add(layer, times)
                return whole
            self.unseen()
            return Built(complete=False)
        lower, typical = (sizes.of_layer(last, positional, given, unknown) for unknown in (1, _TYPICAL))
        return self._note((lower, typical, lower == typical), last)

    def _note(self, count: tuple[int, int, bool], layer: str) -> Built:
        weights, about, complete = count
        rows = not about or layer in _ROWS
        layers = _LAYERS_OF_WELL_KNOWN if layer == _WELL_KNOWN else 1
        made = Built(weights, about, layers if about else 0, complete, rows)
        made.convolutions = int(layer.startswith("Conv") or layer == _WELL_KNOWN)
        made.mixes = layer.startswith("Conv") and layer.endswith("3d")
        made.linear = int(layer in _ROWS or layer == _WELL_KNOWN)
        made.looks_up = not about or layer in _TABLES
        self._total.add(made)
        return made

    def piece(self, whole: Built, attr: str) -> object:
        fewer = sizes.of_features(whole.known_as) if attr == "features" else None
        if fewer is None:
            return Built()
        self._total.weights += fewer - whole.weights
        self._total.about += fewer - whole.about
        whole.weights = whole.about = fewer
        whole.known_as = ""
        return whole

    def _python(self, name: str, positional: list[object], call: ir.Call, scope: Scope) -> object:
        """What one of Python's own functions gives."""
        if name == "getattr" and len(positional) >= 2:
            return self._attribute(call.args[0], positional, scope)
        if name == "isinstance" and len(call.args) == 2:
            return is_of_kind(positional[0], call.args[1].path or "")
        try:
            return builtin(name, positional)
        except (TypeError, ValueError):
            return UNKNOWN

    def _attribute(self, owner: ir.Expr, positional: list[object], scope: Scope) -> object:
        """`getattr(models, name)`: a class or a function of a module; of torch alone, something without weights."""
        base, name = positional[0], positional[1]
        if isinstance(name, str) and owner.path is not None and isinstance(base, (Named, Unknown)):
            return self._outside(scope.function, f"{owner.path}.{name}")
        if isinstance(name, str):
            return self._part(base, name)
        is_torch = isinstance(base, Named) and base.full in ("torch", "torch.nn.functional")
        return base if is_torch else UNKNOWN


def _product(data: ir.Expr | None, follow: Following, scope: Scope) -> tuple[int, int, bool]:
    """The numbers in `torch.zeros(3, width)`."""
    while isinstance(data, (ir.Op, ir.Call)):  # `scale * torch.randn(dim)`, `torch.empty(dim).normal_()`
        if isinstance(data, ir.Op):
            data = next((part for part in data.operands if isinstance(part, ir.Call)), None)
        elif isinstance(data.func, ir.Attr) and isinstance(data.func.base, ir.Call):
            data = data.func.base
        else:
            break
    if data is None:
        return 0, 0, True
    if not isinstance(data, ir.Call):
        return 1, _TYPICAL, False
    values = [follow.value(arg, scope) for arg in data.args]
    if data.method in _OF_DATA and values and (data.method == "tensor" or isinstance(values[0], list)):
        many = len(flat(values[:1]))
        return many, many, values[0] is not UNKNOWN
    size = data.keyword("size")
    values += [follow.value(size, scope)] if size is not None else []
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    if not values:
        return 1, _TYPICAL, False
    lower = typical = 1
    for position, value in enumerate(values):
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        is_table = position == 0 and len(values) > 1 and not _is_width(data.args[:1])
        many = sizes.VOCABULARY if is_table else _TYPICAL
        lower *= 1 if number is None else max(number, 1)
        typical *= many if number is None else max(number, 1)
    return lower, typical, lower == typical


def _is_width(args: Sequence[ir.Expr]) -> bool:
    """Whether a size is called after what each sample has, and not after how many there are: `in_dim`, `2 * out_features`."""
    return any(_OF_WIDTH.search(part.path or "") for arg in args for part in ir.walk(arg))

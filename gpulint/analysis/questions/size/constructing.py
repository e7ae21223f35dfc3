"""What constructors build, as far as constants lead: their statements are followed with the numbers that they are given,
and the weights of each layer that is made on the way are added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.questions.size.built import UNKNOWN, Built, Named, Returned, Scope
from gpulint.analysis.questions.size.computing import builtin, flat
from gpulint.analysis.questions.size.following import DEPTH, Following
from gpulint.analysis.torch import sizes
from gpulint.analysis.torch.frameworks import MODULE_BASES
from gpulint.analysis.torch.methods import GIVES_ITSELF
from gpulint.analysis.values.arguments import is_static
from gpulint.analysis.values.values import Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_TYPICAL = 512  # what stands for a width that no constant says
_WRAPPERS = frozenset("DataParallel DistributedDataParallel DDP compile convert_sync_batchnorm".split())
_WELL_KNOWN = "a well-known model"
_CONTAINERS = frozenset("Sequential ModuleList ModuleDict".split())
# Layers that give each sample one row, whatever the samples are: nothing that grows with pictures or sequences.
_ROWS = frozenset("Linear Bilinear".split())


class Constructing(Following):
    """Follows what one expression makes."""

    def made(self, function: ir.Function, expr: ir.Expr) -> Built | None:
        """What an expression of a function builds; None where it is no network for all that can be seen."""
        value = self.value(expr, Scope(function, {}))
        # All that was made on the way belongs to it: what is handed to a constructor becomes a part.
        return replace(self._total, made=expr) if isinstance(value, Built) else None

    def of_class(self, info: ClassInfo) -> Built | None:
        """What a class builds by its defaults alone."""
        return replace(self._instance(info, (), {}), made=info.cls)

    # --- calls ---------------------------------------------------------------------------------------------------

    def call(self, call: ir.Call, scope: Scope) -> object:
        name = call.method
        if name in GIVES_ITSELF and isinstance(call.func, ir.Attr):
            return self.value(call.func.base, scope)
        if name == "__init__" and isinstance(call.func, ir.Attr):
            return self._base(call, scope)
        args = self.display(ir.Seq(call.origin, "list", call.args), scope)
        given = {key: self.value(value, scope) for key, value in call.keywords if key is not None}
        positional: list[object] = args if isinstance(args, list) else []
        method = self._own_method(call, scope)
        if method is not None:
            return self._enter(
                method, positional, given, scope.own, scope.info, skip=0 if is_static(method) else 1
            )
        home: FileAnalysis = scope.function.home
        target = self._target(call, scope)
        if isinstance(target, str):
            return self._library(call, target, positional, given, scope)
        if isinstance(target, ClassInfo):
            if not target.is_module:
                return UNKNOWN
            return self._instance(target, positional, given)
        if isinstance(target, ir.Function):
            return self._enter(target, positional, given, {}, None, skip=0)
        return self._plain(call, positional, scope, home)

    def _target(self, call: ir.Call, scope: Scope) -> object:
        """The class, the function or the library's name that a call is of; None where that is not known."""
        home: FileAnalysis = scope.function.home
        path = call.func.path
        if path is None:
            return self._from_table(call.func, scope)
        if path.partition(".")[0] in scope.names or isinstance(call.func, ir.Attr):
            known = self.value(call.func, scope)
            if isinstance(known, ClassInfo):
                return known
            if isinstance(known, Named):
                return known.full
            if path.partition(".")[0] in scope.names:
                return None
        if path in home.classes:
            return home.classes[path]
        for function in home.module.functions:
            if function.name == path and function.cls is None:
                return function
        full = home.names.qualify(path)
        if full is None:
            return None
        found = home.imported_value(full)
        if found is not None and found.kind in (Kind.CLASS, Kind.FUNCTION):
            return found.ref
        return full

    def _from_table(self, func: ir.Expr, scope: Scope) -> str | None:
        """`models.__dict__[name](…)` of torchvision."""
        base = func.base.path if isinstance(func, ir.Sub) else None
        if base is None or not base.endswith(".__dict__") or not isinstance(func, ir.Sub):
            return None
        home: FileAnalysis = scope.function.home
        full, name = home.names.qualify(base.removesuffix(".__dict__")), self.value(func.index, scope)
        return f"{full}.{name}" if full == "torchvision.models" and isinstance(name, str) else None

    def _own_method(self, call: ir.Call, scope: Scope) -> ir.Function | None:
        path, params = call.func.path or "", scope.function.params
        head, _, rest = path.partition(".")
        if scope.info is None or not params or params[0].name != head or "." in rest or not rest:
            return None
        return scope.info.method(rest)

    def _base(self, call: ir.Call, scope: Scope) -> object:
        """`super().__init__(…)`."""
        if scope.info is None:
            return UNKNOWN
        args = call.args[1:] if call.func.path is not None else call.args
        positional = [self.value(arg, scope) for arg in args if not isinstance(arg, ir.Starred)]
        given = {key: self.value(value, scope) for key, value in call.keywords if key is not None}
        owner = next(
            (one for one in scope.info.ancestors() if scope.function in one.cls.methods.values()), None
        )
        for base in owner.bases if owner is not None else ():
            method = base.method("__init__")
            if method is not None:
                self._enter(method, positional, given, scope.own, base, skip=1)
        lasts = {name.rpartition(".")[2] for name in (owner.base_names if owner is not None else ())}
        known = {base.cls.name for base in (owner.bases if owner is not None else ())}
        if lasts - known - MODULE_BASES - {"object", "ABC"}:
            self.unseen()
        return UNKNOWN

    def _instance(self, info: ClassInfo, positional: Sequence[object], given: Mapping[str, object]) -> Built:
        outer, self._total = self._total, Built()
        method = info.method("__init__")
        if method is not None:
            owner = next(one for one in info.ancestors() if "__init__" in one.cls.methods)
            self._enter(method, positional, given, {}, owner, skip=1)
        elif not info.is_module or any(
            name.rpartition(".")[2] not in MODULE_BASES for name in info.base_names
        ):
            self.unseen()
        made, self._total = self._total, outer
        self._total.add(made)
        return made

    def _enter(
        self,
        function: ir.Function,
        positional: Sequence[object],
        given: Mapping[str, object],
        own: dict[str, object],
        info: ClassInfo | None,
        skip: int,
    ) -> object:
        """What a function returns for these arguments."""
        if self._depth >= DEPTH or self._left <= 0:
            self.unseen()
            return UNKNOWN
        params = [param for param in function.params if param.kind in ("normal", "keyword")]
        names: dict[str, object] = dict.fromkeys((param.name for param in function.params), UNKNOWN)
        scope = Scope(function, names, own, info)
        for param in params[skip:]:
            if param.default is not None:
                names[param.name] = self.value(param.default, Scope(function, {}))
        names.update(zip((param.name for param in params[skip:]), positional, strict=False))
        names.update({key: value for key, value in given.items() if key in names})
        rest = next((param for param in function.params if param.kind == "star"), None)
        if rest is not None:
            names[rest.name] = list(positional[len(params) - skip :])
        self._depth += 1
        try:
            self.run(function.body, scope)
        except Returned as ended:
            return ended.value
        finally:
            self._depth -= 1
        return UNKNOWN

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
            product = _product(call.args[0] if call.args else None, self, scope)
            if not product[2]:
                self.unseen()
            return self._note(product, "Parameter")
        if full.startswith("torch.nn.") and "functional" not in full and last[:1].isupper():
            return self._layer(last, positional, given)
        if last == "deepcopy" and positional and isinstance(positional[0], Built):
            self._total.add(positional[0])
            return positional[0]
        name = positional[0] if positional and isinstance(positional[0], str) else None
        weights = sizes.of_model(full, name)
        if weights is not None:
            return self._note((weights, weights, True), _WELL_KNOWN)
        root = full.partition(".")[0]
        if last[:1].isupper() and root not in ("torch", "numpy", "collections", "functools", "math"):
            self.unseen()
        return self._plain(call, positional, scope, scope.function.home)

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
            if isinstance(layer, Built) and isinstance(times, int):
                self._total.add(layer, times - 1)
                return layer
            self.unseen()
            return Built(complete=False)
        lower, typical = (sizes.of_layer(last, positional, given, unknown) for unknown in (1, _TYPICAL))
        return self._note((lower, typical, lower == typical), last)

    def _note(self, count: tuple[int, int, bool], layer: str) -> Built:
        weights, about, complete = count
        rows = not about or layer in _ROWS
        made = Built(weights, about, 1 if about else 0, complete, rows)
        made.convolutions = int(layer.startswith("Conv") or layer == _WELL_KNOWN)
        made.linear = int(layer in _ROWS or layer == _WELL_KNOWN)
        self._total.add(made)
        return made

    def _plain(self, call: ir.Call, positional: list[object], scope: Scope, home: FileAnalysis) -> object:
        name = call.method
        if name == "getattr" and positional and isinstance(positional[0], Named):
            if positional[0].full in ("torch", "torch.nn.functional"):
                return positional[0]
        base = self.value(call.func.base, scope) if isinstance(call.func, ir.Attr) else UNKNOWN
        if isinstance(base, list) and name in ("append", "extend") and positional:
            if name == "append":
                base.append(positional[0])
            elif isinstance(positional[0], (list, tuple)):
                base.extend(positional[0])
            return UNKNOWN
        try:
            if isinstance(call.func, ir.Name):
                return builtin(name, positional)
        except (TypeError, ValueError):
            return UNKNOWN
        if name[:1].isupper() and home.names.qualify(call.func.path or "") is None:
            self.unseen()  # a class that comes from nobody knows where
        elif isinstance(call.func, (ir.Call, ir.Sub)) or (call.func.path or "") in scope.names:
            self.unseen()  # `table[name](…)`, `getattr(module, name)(…)`, `base(…)` of a parameter
        elif isinstance(call.func, ir.Attr) and name[:1].isupper():
            self.unseen()
        return UNKNOWN


def _product(data: ir.Expr | None, follow: Following, scope: Scope) -> tuple[int, int, bool]:
    """The numbers in `torch.zeros(3, width)`."""
    if not isinstance(data, ir.Call):
        return 1, _TYPICAL, False
    values = [follow.value(arg, scope) for arg in data.args]
    size = data.keyword("size")
    values += [follow.value(size, scope)] if size is not None else []
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    if not values:
        return 1, _TYPICAL, False
    lower = typical = 1
    for position, value in enumerate(values):
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        many = sizes.VOCABULARY if position == 0 and len(values) > 1 else _TYPICAL
        lower *= 1 if number is None else max(number, 1)
        typical *= many if number is None else max(number, 1)
    return lower, typical, lower == typical

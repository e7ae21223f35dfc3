"""What constructors build, as far as constants lead: their statements are followed with the numbers that they are given,
and the weights of each layer that is made on the way are added up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.questions.size.built import (
    UNKNOWN,
    Built,
    Closure,
    Named,
    Partial,
    Returned,
    Scope,
    Thing,
    Unknown,
)
from gpulint.analysis.questions.size.computing import BUILTINS, builtin, flat, is_of_kind, of_math, of_method
from gpulint.analysis.questions.size.following import Following
from gpulint.analysis.questions.size.naming import DEPTH
from gpulint.analysis.torch import sizes
from gpulint.analysis.torch.frameworks import MODULE_BASES
from gpulint.analysis.torch.methods import GIVES_ITSELF
from gpulint.analysis.values.arguments import is_static

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_TYPICAL = 512  # what stands for a width that no constant says
_WRAPPERS = frozenset("DataParallel DistributedDataParallel DDP compile convert_sync_batchnorm".split())
_WELL_KNOWN = "a well-known model"
_EMPTY_BASES = MODULE_BASES | {"object", "ABC", "Generic", "Protocol"}
_OF_DATA = frozenset({"tensor", "Tensor", "FloatTensor"})
_CONTAINERS = frozenset("Sequential ModuleList ModuleDict".split())
# Layers that give each sample one row, whatever the samples are: nothing that grows with pictures or sequences.
_ROWS = frozenset("Linear Bilinear".split())


class Constructing(Following):
    """Follows what one expression makes."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[object, Built] = {}

    def made(self, function: ir.Function, expr: ir.Expr) -> Built | None:
        """What an expression of a function builds; None where it is no network for all that can be seen."""
        value = self.value(expr, Scope(function, {}))
        if isinstance(value, (list, tuple)):  # `net, optimizer = build(args)`
            value = next((one for one in value if isinstance(one, Built)), UNKNOWN)
        # All that was made on the way belongs to it: what is handed to a constructor becomes a part.
        return replace(self._total, made=expr) if isinstance(value, Built) else None

    def of_class(self, info: ClassInfo) -> Built | None:
        """What a class builds by its defaults alone."""
        return replace(self._instance(info, [], {}), made=info.cls)

    # --- calls ---------------------------------------------------------------------------------------------------

    def call(self, call: ir.Call, scope: Scope) -> object:
        name = call.method
        if name in GIVES_ITSELF and isinstance(call.func, ir.Attr):
            return self.value(call.func.base, scope)
        if name == "__init__" and isinstance(call.func, ir.Attr):
            return self._base(call, scope)
        positional, given = self._arguments(call, scope)
        if isinstance(call.func, ir.Name) and name in BUILTINS and name not in scope.names:
            return self._python(name, positional, call, scope)
        method = self._own_method(call, scope)
        if method is not None:
            if is_static(method):
                return self._enter(method, positional, given, {}, None, 0)
            return self._enter(method, positional, given, scope.own, scope.info, 1)
        target = self._target(call, scope)
        if target is UNKNOWN or (isinstance(target, Named) and not target.full):
            return self._plain(call, positional, scope)
        return self._apply(call, target, positional, given, scope)

    def _arguments(self, call: ir.Call, scope: Scope) -> tuple[list[object], dict[str, object]]:
        args: list[object] = []
        for arg in call.args:
            value = self._argument(arg.value if isinstance(arg, ir.Starred) else arg, scope)
            if not isinstance(arg, ir.Starred):
                args.append(value)
            elif isinstance(value, (list, tuple)):
                args += value
        given: dict[str, object] = {}
        for key, expr in call.keywords:
            value = self._argument(expr, scope)
            if key is not None:
                given[key] = value
            elif isinstance(value, dict):
                given.update((name, one) for name, one in value.items() if isinstance(name, str))
        return args, given

    def _argument(self, expr: ir.Expr, scope: Scope) -> object:
        before = replace(self._total)
        value = self.value(expr, scope)
        if isinstance(expr, (ir.Attr, ir.Sub, ir.Op)) and not any(
            isinstance(one, Built) for one in flat([value])
        ):
            self._total = before  # a number, whatever it was read from: `env.action_space.n`
        return value

    def _apply(
        self,
        call: ir.Call,
        target: object,
        positional: list[object],
        given: Mapping[str, object],
        scope: Scope,
    ) -> object:
        """What something gives that is called with these arguments."""
        if isinstance(target, Partial):
            together = {**target.given, **given}
            return self._apply(call, target.target, [*target.positional, *positional], together, scope)
        if isinstance(target, Named):
            return self._library(call, target.full, positional, given, scope)
        if isinstance(target, ClassInfo):
            return self._object(target, positional, given)
        if isinstance(target, Closure):
            function, outer = target.function, target.outer
            of_object = outer.function is function and not is_static(function)
            own, info = (outer.own, outer.info) if of_object else ({}, None)
            return self._enter(function, positional, given, own, info, 0, outer)
        return self._plain(call, positional, scope)

    def _target(self, call: ir.Call, scope: Scope) -> object:
        """The class, the function or the library's name that a call is of; `UNKNOWN` where that is not known."""
        if call.func.path is None and isinstance(call.func, ir.Sub):
            table = self._from_table(call.func, scope)
            return table if table is not UNKNOWN else self.value(call.func, scope)
        if call.func.path is None and isinstance(call.func, ir.Attr):
            return UNKNOWN  # a method of what is made there, which is counted when its base is followed
        return self.value(call.func, scope)

    def _from_table(self, func: ir.Sub, scope: Scope) -> object:
        """`models.__dict__[name](…)`, of torchvision or of the project; `globals()[name](…)`."""
        name = self.value(func.index, scope)
        if not isinstance(name, str):
            return UNKNOWN
        base = func.base.path
        if base is not None and base.endswith(".__dict__"):
            return self._outside(scope.function, f"{base.removesuffix('.__dict__')}.{name}")
        if isinstance(func.base, ir.Call) and func.base.method in ("globals", "vars"):
            of = func.base.args[0].path if func.base.args else None
            return (
                self._outside(scope.function, f"{of}.{name}")
                if of
                else self._bound_outside(scope.function, name)
            )
        return UNKNOWN

    def _own_method(self, call: ir.Call, scope: Scope) -> ir.Function | None:
        path, params = call.func.path or "", scope.function.params
        head, _, rest = path.partition(".")
        if scope.info is None or not params or params[0].name != head or "." in rest or not rest:
            return None
        if rest in scope.own:
            return None  # something stored there
        return self.method(scope.info, rest)

    def _base(self, call: ir.Call, scope: Scope) -> object:
        """`super().__init__(…)`, `nn.Linear.__init__(self, …)`."""
        if scope.info is None or not isinstance(call.func, ir.Attr):
            return UNKNOWN
        positional, given = self._arguments(call, scope)
        if call.func.path is not None:
            self._begin(self.value(call.func.base, scope), positional[1:], given, scope)
            return UNKNOWN
        owner = next(
            (one for one in self.family(scope.info) if scope.function in one.cls.methods.values()), None
        )
        for base in self.bases(owner) if owner is not None else ():
            self._begin(base, positional, given, scope)
        return UNKNOWN

    def _begin(
        self, base: object, positional: list[object], given: Mapping[str, object], scope: Scope
    ) -> None:
        """Follow the constructor of a base."""
        if isinstance(base, ClassInfo):
            self._construct(base, positional, given, scope.own)
        elif isinstance(base, Named) and base.full.startswith("torch.nn."):
            self._layer(base.full.rpartition(".")[2], positional, given)
        elif not (isinstance(base, Named) and base.full.rpartition(".")[2] in _EMPTY_BASES):
            self.unseen()

    def _object(self, info: ClassInfo, positional: list[object], given: Mapping[str, object]) -> object:
        if info.is_module:
            return self._instance(info, positional, given)
        own: dict[str, object] = {}
        if info.is_dataclass:
            own.update(given)
        else:
            outer, self._total = self._total, Built()
            self._construct(info, positional, given, own)
            self._total = outer
        return Thing(own, info)

    def _instance(self, info: ClassInfo, positional: list[object], given: Mapping[str, object]) -> Built:
        key = _key(info, positional, given)
        made = self._known.get(key) if key is not None else None
        if made is None:
            outer, self._total = self._total, Built()
            own: dict[str, object] = {}
            self._construct(info, positional, given, own)
            made, self._total = replace(self._total, own=own), outer
            if key is not None:
                self._known[key] = made
        self._total.add(made)
        return made

    def _construct(
        self,
        info: ClassInfo,
        positional: list[object],
        given: Mapping[str, object],
        own: dict[str, object],
    ) -> None:
        for one in self.family(info):
            method = one.cls.methods.get("__init__")
            if method is not None:
                self._enter(method, positional, given, own, info, 1)
                return
        for one in self.family(info):
            for base in self.bases(one):
                if not isinstance(base, ClassInfo):
                    self._begin(base, positional, given, Scope(info.home.module.body, {}, own, info))

    def _enter(
        self,
        function: ir.Function,
        positional: Sequence[object],
        given: Mapping[str, object],
        own: dict[str, object],
        info: ClassInfo | None,
        skip: int,
        outer: Scope | None = None,
    ) -> object:
        """What a function returns for these arguments."""
        if self._depth >= DEPTH or self._left <= 0:
            self.unseen()
            return UNKNOWN
        scope = Scope(function, _bound(function, positional, given, skip), own, info, outer)
        for param in function.params[skip:]:
            if param.default is not None and param.name not in scope.names:
                scope.names[param.name] = self.value(param.default, Scope(function.parent or function, {}))
        for param in function.params:
            scope.names.setdefault(param.name, UNKNOWN)
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
            return self._note(_product(call.args[0] if call.args else None, self, scope), "Parameter")
        if full.startswith("torch.nn.") and "functional" not in full and last[:1].isupper():
            return self._layer(last, positional, given)
        if last == "deepcopy" and positional:
            for one in flat(positional[:1]):
                if isinstance(one, Built):
                    self._total.add(one)
            return positional[0]
        name = positional[0] if positional and isinstance(positional[0], str) else None
        weights = sizes.of_model(full, name)
        if weights is not None:
            return replace(self._note((weights, weights, True), _WELL_KNOWN), known_as=last)
        root = full.partition(".")[0]
        if full == "functools.partial" and positional:
            return Partial(positional[0], positional[1:], given)
        if root in ("math", "numpy"):
            return of_math(last, positional)
        if last == "OrderedDict" and positional:
            return positional[0]
        if (
            last == "repeat"
            and root == "itertools"
            and len(positional) == 2
            and isinstance(positional[1], int)
        ):
            return positional[:1] * positional[1]
        if re.fullmatch(r"to_[1-4]tuple", last) and positional:
            return positional[0] if isinstance(positional[0], list) else positional * int(last[3])
        if last[:1].isupper() and not sizes.is_weightless(full):
            self.unseen()
        # `spectral_norm(layer)`, `torch.jit.script(net)`
        return positional[0] if positional and isinstance(positional[0], Built) else UNKNOWN

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

    def _plain(self, call: ir.Call, positional: list[object], scope: Scope) -> object:
        name = call.method
        base = self.value(call.func.base, scope) if isinstance(call.func, ir.Attr) else UNKNOWN
        if isinstance(base, (list, dict, str)):
            return of_method(base, name, positional)
        home: FileAnalysis = scope.function.home
        if isinstance(base, Thing) and isinstance(call.func, ir.Attr):
            return UNKNOWN
        if positional and isinstance(positional[0], Built):
            return positional[0]  # what is put around it is not seen: `norm(nn.Conv2d(8, 8, 3))`
        if name[:1].isupper() and home.names.qualify(call.func.path or "") is None:
            self.unseen()  # a class that comes from nobody knows where
        elif isinstance(call.func, (ir.Call, ir.Sub)) or (call.func.path or "") in scope.names:
            self.unseen()  # `table[name](…)`, `getattr(module, name)(…)`, `base(…)` of a parameter
        elif isinstance(call.func, ir.Attr) and name[:1].isupper():
            self.unseen()
        return UNKNOWN


def _key(info: ClassInfo, positional: Sequence[object], given: Mapping[str, object]) -> object:
    """What tells two makings of a class apart; None where that cannot be said."""
    try:
        values = (
            *map(_frozen, positional),
            *((name, _frozen(value)) for name, value in sorted(given.items())),
        )
        hash(values)
    except TypeError:
        return None
    return (info, values)


def _frozen(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    # True is 1, and 1.0: a layer with a bias is not one with a width of 1.
    return (type(value), value) if isinstance(value, (bool, int, float)) else value


def _bound(
    function: ir.Function, positional: Sequence[object], given: Mapping[str, object], skip: int
) -> dict[str, object]:
    """The names of a function's parameters that its arguments bind."""
    params = [param for param in function.params if param.kind in ("normal", "keyword")][skip:]
    names: dict[str, object] = dict(zip((param.name for param in params), positional, strict=False))
    known = {param.name for param in params}
    names.update((key, value) for key, value in given.items() if key in known)
    for param in function.params:
        if param.kind == "star":
            names[param.name] = list(positional[len(params) :])
        elif param.kind == "doublestar":
            names[param.name] = {key: value for key, value in given.items() if key not in known}
    return names


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
        many = sizes.VOCABULARY if position == 0 and len(values) > 1 else _TYPICAL
        lower *= 1 if number is None else max(number, 1)
        typical *= many if number is None else max(number, 1)
    return lower, typical, lower == typical

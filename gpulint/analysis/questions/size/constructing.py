"""What constructors build, as far as constants lead: their statements are followed with the numbers that they are given,
and the weights of each layer that is made on the way are added up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
)
from gpulint.analysis.questions.size.computing import BUILTINS, flat, of_method
from gpulint.analysis.questions.size.layers import Layers
from gpulint.analysis.questions.size.naming import DEPTH
from gpulint.analysis.torch.frameworks import MODULE_BASES
from gpulint.analysis.torch.keeping import PUTTING
from gpulint.analysis.torch.methods import GIVES_ITSELF
from gpulint.analysis.values.arguments import bind_sources, is_static

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# What attends, brings places together, goes through graphs, or encodes points of space, of which there are many.
_MIXING = frozenset(
    "einsum matmul bmm mm spmm addmm baddbmm scaled_dot_product_attention transpose permute rearrange propagate scatter "
    "scatter_add index_add conv1d conv2d conv3d fft rfft sin cos grid_sample unfold cdist outer weight".split()
)
_BEGINS = re.compile("init|reset")
_EMPTY_BASES = MODULE_BASES | {"object", "ABC", "Generic", "Protocol"}


class Constructing(Layers):
    """Follows what one expression makes."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[object, Built] = {}

    def made(self, function: ir.Function, expr: ir.Expr, attrs: Sequence[str] = ()) -> Built | None:
        """What an expression of a function builds, or what the attributes are of that; None where it is no network for all
        that can be seen."""
        value = self.value(expr, self._scope(function))
        if isinstance(value, (list, tuple)):  # `net, optimizer = build(args)`
            value = next((one for one in value if isinstance(one, Built)), UNKNOWN)
        for attr in attrs:
            value = self._part(value, attr)
        if attrs:
            return (
                replace(value, made=expr, filename=function.home.filename)
                if isinstance(value, Built)
                else None
            )
        # All that was made on the way belongs to it: what is handed to a constructor becomes a part.
        return (
            replace(self._total, made=expr, filename=function.home.filename)
            if isinstance(value, Built)
            else None
        )

    def of_class(self, info: ClassInfo) -> Built | None:
        """What a class builds by its defaults alone."""
        return replace(self._instance(info, [], {}), made=info.cls, filename=info.home.filename)

    def number(self, function: ir.Function, expr: ir.Expr) -> float | None:
        """The number that an expression of a function comes to, by constants and by what command lines have by default."""
        value = self.value(expr, self._scope(function))
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def _scope(self, function: ir.Function) -> Scope:
        """Where an expression of a function is followed: in a method beside what the constructor of an object stores by its
        defaults, where all who make one leave them."""
        home: FileAnalysis = function.home
        info = home.class_of(function)
        init = info.method("__init__") if info is not None and not info.is_module else None
        if info is None or init is None or not function.params or function.name == "__init__":
            return Scope(function, {})
        names = {param.name: UNKNOWN for param in init.params[1:] if _is_given(home, init, param.name)}
        own: dict[str, object] = {}
        outer, self._total = self._total, Built()
        self._enter(init, [], names, own, info, 1)
        self._total = outer
        return Scope(function, {function.params[0].name: UNKNOWN}, own, info)

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
        if name == "from_pretrained" and isinstance(call.func, ir.Attr):
            target = self._inherited(call.func, scope) or target
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

    def _inherited(self, func: ir.Attr, scope: Scope) -> Named | None:
        """The library's method that a class of the project has from its base: `Scorer.from_pretrained`."""
        info = self.value(func.base, scope)
        for one in info.lineage() if isinstance(info, ClassInfo) else ():
            for base in self.bases(one):
                if isinstance(base, Named) and base.full:
                    return Named(f"{base.full}.{func.attr}")
        return None

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
            (one for one in scope.info.lineage() if scope.function in one.cls.methods.values()), None
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
            mixes = self._total.mixes or _mixes(info)
            made, self._total = replace(self._total, own=own, mixes=mixes), outer
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
        for one in info.lineage():
            method = one.cls.methods.get("__init__")
            if method is not None:
                self._enter(method, positional, given, own, info, 1)
                return
        for one in info.lineage():
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

    def _plain(self, call: ir.Call, positional: list[object], scope: Scope) -> object:
        name = call.method
        base = self.value(call.func.base, scope) if isinstance(call.func, ir.Attr) else UNKNOWN
        if isinstance(base, (list, dict, str)):
            return of_method(base, name, positional)
        home: FileAnalysis = scope.function.home
        if isinstance(base, Thing) and isinstance(call.func, ir.Attr):
            return UNKNOWN
        if isinstance(base, Built) and name in PUTTING:  # `self.layers.append(nn.Linear(8, 8))`
            for one in flat(positional):
                if isinstance(one, Built):
                    base.add(one)
            return base
        if positional and isinstance(positional[0], Built):
            return positional[0]  # what is put around it is not seen: `norm(nn.Conv2d(8, 8, 3))`
        if name[:1].isupper() and home.names.qualify(call.func.path or "") is None:
            self.unseen()  # a class that comes from nobody knows where
        elif isinstance(call.func, (ir.Call, ir.Sub)) or (call.func.path or "") in scope.names:
            self.unseen()  # `table[name](…)`, `getattr(module, name)(…)`, `base(…)` of a parameter
        elif isinstance(call.func, ir.Attr) and name[:1].isupper():
            self.unseen()
        return UNKNOWN


def _is_given(home: FileAnalysis, init: ir.Function, name: str) -> bool:
    """Whether somebody who makes an object gives a parameter of its constructor, or may do so out of sight."""
    project = home.project
    if init.cls is None or project is None or project.derived(init.cls.name):
        return True
    calls = project.calls_of(home.filename, init)
    return not calls or any(
        name in bind_sources(init, call, True)
        or any(isinstance(arg, ir.Starred) for arg in call.args)
        or any(key is None for key, _ in call.keywords)
        for call in calls
    )


def _mixes(info: ClassInfo) -> bool:
    """Whether a method of a class may save more than the rows that go through its layers."""
    methods = [
        method
        for one in info.lineage()
        for method in one.cls.methods.values()
        if not _BEGINS.search(method.name)
    ]
    return any(
        method.home.evidence[method].words & _MIXING
        or any(isinstance(part, ir.Op) and part.op == "@" for part in _parts(method))
        for method in methods
    )


def _parts(method: ir.Function) -> Iterator[ir.Expr]:
    for statement in ir.statements(method.body):
        yield from ir.own_parts(statement)


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

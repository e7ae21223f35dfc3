"""The hooks that a file registers, and what they put where: on the object, into a dict or a list, on the module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.hooks import _function, _made_by
from gpulint.rules.detect.lifetimes.reaching_back import own_name, scope

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import resets, targets
from gpulint.analysis.torch.methods import ADDING
from gpulint.analysis.torch.names import KEEPS_GRAPH, REDUCTIONS, TO_DEVICE, TO_HOST

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MODULE_HOOKS = {
    "register_forward_hook": 2,
    "register_forward_pre_hook": 1,
    "register_full_backward_hook": 2,
    "register_full_backward_pre_hook": 1,
    "register_backward_hook": 2,
}
_BACKWARD = frozenset(
    {"register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook"}
)
# Functions that only look at a tensor, or make something else of it.
_LOOKS = frozenset("len isinstance type id print str repr float int hasattr getattr list_shape range".split())
_ARITHMETIC = frozenset({"+", "-", "*", "/", "@", "**", "neg"})


@dataclass(frozen=True, slots=True)
class Kept:
    """What of a tensor is left in an expression: its graph, its bytes on the device; `sure` is False behind a call of which
    nothing is known, `moved` True behind a `.cpu()`, `.clone()` or `.to(…)`, `reduced` where it is a number of it."""

    graph: bool = True
    device: bool = True
    sure: bool = True
    moved: bool = False
    reduced: bool = False

    def but(self, **changes: bool) -> Kept:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return Kept(**{**fields, **changes})


@dataclass(frozen=True, slots=True)
class Registration:
    """One call that registers a hook. `of_tensor`: on a tensor or a node of the graph, not on a module."""

    function: ir.Function
    stmt: ir.Stmt
    call: ir.Call
    hook: ir.Function | None
    of_tensor: bool = False

    @property
    def dropped(self) -> bool:
        """Whether nobody gets the handle."""
        return isinstance(self.stmt, ir.ExprStmt) and self.stmt.value is self.call

    @property
    def backward(self) -> bool:
        return self.call.method in _BACKWARD

    @property
    def tensors(self) -> int:
        """How many of the hook's last parameters are tensors."""
        return 1 if self.of_tensor else _MODULE_HOOKS[self.call.method]


@dataclass(frozen=True, slots=True)
class Store:
    """A statement of a hook that keeps something of what the hook is given. `adds`: beside what is there already."""

    registration: Registration
    hook: ir.Function
    stmt: ir.Stmt
    value: ir.Expr
    place: str  # `self.outputs`, `features`
    adds: bool
    kept: Kept

    @property
    def word(self) -> str:
        """The last name of the place."""
        return self.place.rpartition(".")[2]


def registered(file: FileAnalysis) -> list[Registration]:
    """All hooks of the file, with their functions where these are in it."""
    found: list[Registration] = []
    for function in file.module.functions:
        called = file.evidence[function].called
        if called & _MODULE_HOOKS.keys() or "register_hook" in called:
            for stmt, call in ir.calls(function.body):
                if isinstance(call.func, ir.Attr) and call.args:
                    if call.method in _MODULE_HOOKS:
                        found.append(Registration(function, stmt, call, _hook(file, function, call.args[0])))
                    elif call.method == "register_hook":
                        hook = _hook(file, function, call.args[0])
                        found.append(Registration(function, stmt, call, hook, True))
    return found


def _hook(file: FileAnalysis, function: ir.Function, given: ir.Expr) -> ir.Function | None:
    """The function that is registered: named, a lambda, a method, partial, or what a maker returns."""
    if isinstance(given, ir.LambdaExpr):
        return given.function
    if isinstance(given, ir.Call):
        if given.method == "partial" and given.args:
            return _named(file, function, given.args[0])
        maker = _named(file, function, given.func)
        return None if maker is None else _made_by(maker)
    return _named(file, function, given)


def _named(file: FileAnalysis, function: ir.Function, given: ir.Expr) -> ir.Function | None:
    """A function by its name; a method also from within what is defined in another method."""
    own = own_name(function)
    if own and isinstance(given, ir.Attr) and given.base.path == own:
        info = file.class_of(function)
        return None if info is None else info.method(given.attr)
    return _function(file, function, given)


def stores(file: FileAnalysis) -> list[Store]:
    """What the hooks of the file keep, each statement once."""
    found: list[Store] = []
    seen: set[int] = set()
    for registration in registered(file):
        hook = registration.hook
        if hook is not None and id(hook) not in seen and hook.home is file:
            seen.add(id(hook))
            found += _stores(registration, hook)
    return found


def _stores(registration: Registration, hook: ir.Function) -> Iterator[Store]:
    names = [param.name for param in hook.params if param.kind == "normal"]
    # A gradient has a graph only where somebody asks for one of its own.
    tensors = {name: Kept(graph=not registration.of_tensor) for name in names[-registration.tensors :]}
    if not tensors:
        return
    own = own_name(hook)
    local: set[str] = set(tensors)
    shared = {name for s in ir.statements(hook.body) if isinstance(s, ir.Scope) for name in s.names}
    for statement in ir.statements(hook.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            yield from _assigned(registration, hook, statement, tensors, local, shared)
            for target in targets(statement):
                if isinstance(target, ir.Name) and target.id not in shared:
                    local.add(target.id)
                    kept = kept_of(statement.value, tensors)
                    if kept is not None:
                        tensors[target.id] = kept
        elif isinstance(statement, (ir.ExprStmt, ir.Return)) and isinstance(statement.value, ir.Call):
            added = _added(statement.value)
            kept = kept_of(added[1], tensors) if added is not None else None
            if added is not None and kept is not None and _root(added[0]) not in local - {own}:
                yield Store(registration, hook, statement, added[1], added[0], True, kept)
        elif isinstance(statement, ir.AugAssign) and isinstance(statement.value, ir.Seq):
            kept = kept_of(statement.value, tensors)
            place = statement.target.path
            if kept is not None and place is not None and _root(place) not in local:
                yield Store(registration, hook, statement, statement.value, place, True, kept)


def _assigned(
    registration: Registration,
    hook: ir.Function,
    statement: ir.Assign,
    tensors: dict[str, Kept],
    local: set[str],
    shared: set[str],
) -> Iterator[Store]:
    assert statement.value is not None
    kept = kept_of(statement.value, tensors)
    if kept is None:
        return
    for target in targets(statement):
        base = target.base if isinstance(target, ir.Sub) else target
        path = base.path
        if path is None or (isinstance(target, ir.Name) and target.id not in shared):
            continue
        if _root(path) in local:
            continue
        adds = isinstance(statement.value, ir.Op) and any(
            isinstance(part, ir.Seq) for part in statement.value.operands
        )
        yield Store(registration, hook, statement, statement.value, path, adds, kept)


def _added(call: ir.Call) -> tuple[str, ir.Expr] | None:
    """`self.seen` and `x` of `self.seen.append(x)`, `self.seen[name].append(x)`, `seen.setdefault(k, []).append(x)`."""
    if call.method not in ADDING or not call.args or not isinstance(call.func, ir.Attr):
        return None
    base = call.func.base
    if isinstance(base, ir.Call) and base.method == "setdefault" and isinstance(base.func, ir.Attr):
        base = base.func.base
    if isinstance(base, ir.Sub):
        base = base.base
    return None if base.path is None else (base.path, call.args[-1])


def _root(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def kept_of(expr: ir.Expr, tensors: dict[str, Kept]) -> Kept | None:
    """What of the tensors is left in an expression; None where nothing is, or only numbers on the host."""
    if isinstance(expr, ir.Name):
        return tensors.get(expr.id)
    if isinstance(expr, ir.Sub):
        return kept_of(expr.base, tensors)
    if isinstance(expr, ir.Attr):
        return _attribute(expr, tensors)
    if isinstance(expr, ir.Call):
        return _called(expr, tensors)
    if isinstance(expr, ir.Comp):
        return _comprehension(expr, tensors)
    if isinstance(expr, (ir.Seq, ir.DictDisplay)) or (isinstance(expr, ir.Op) and expr.op in _ARITHMETIC):
        return _most(kept_of(part, tensors) for part in expr.children())
    if isinstance(expr, ir.Op) and expr.op == "if":
        return _most(kept_of(part, tensors) for part in expr.operands[1:])
    return None


def _most(parts: Iterator[Kept | None]) -> Kept | None:
    found = [part for part in parts if part is not None]
    return max(found, key=lambda one: (one.graph, one.device), default=None)


def _attribute(expr: ir.Attr, tensors: dict[str, Kept]) -> Kept | None:
    base = kept_of(expr.base, tensors)
    if base is None or expr.attr in ("shape", "dtype", "device", "ndim", "requires_grad"):
        return None
    return base.but(graph=False) if expr.attr == "data" else base


def _called(call: ir.Call, tensors: dict[str, Kept]) -> Kept | None:
    method = call.method
    given = kept_of(call.func.base, tensors) if isinstance(call.func, ir.Attr) else None
    if given is None:
        if method in _LOOKS or method in TO_HOST or (method[:1] == "_" and not call.args):
            return None
        given = _most(kept_of(arg, tensors) for arg in call.args)
        if given is None:
            return None
        known = method in KEEPS_GRAPH or method in REDUCTIONS
        given = given if known or method in ("list", "tuple") else given.but(sure=False)
    if method in TO_HOST:
        return None
    if method == "detach" or method in TO_DEVICE:
        return given.but(graph=False)
    if method in REDUCTIONS:
        return given.but(reduced=True)
    if method in ("cpu", "clone", "to", "float", "cuda", "contiguous"):
        host = method == "cpu" or any(isinstance(a, ir.Const) and a.value == "cpu" for a in call.args)
        return given.but(moved=True, device=given.device and not host)
    return given if method in KEEPS_GRAPH else given.but(sure=False)


def _comprehension(comp: ir.Comp, tensors: dict[str, Kept]) -> Kept | None:
    """`[x.detach() for x in output]`."""
    inner = dict(tensors)
    for target, iterable, _ in comp.clauses:
        kept = kept_of(iterable, inner)
        for part in ir.walk(target):
            if isinstance(part, ir.Name) and kept is not None:
                inner[part.id] = kept
    return _most(kept_of(element, inner) for element in comp.elements)


def emptying(file: FileAnalysis, store: Store) -> list[ir.Function]:
    """The functions around the hook that empty the place or start it afresh, constructors aside."""
    return [
        function
        for function in scope(file, store.hook)
        if function.name not in ("__init__", "__del__")
        and function is not store.hook
        and (
            any(reset.rpartition(".")[2].partition("[")[0] == store.word for reset in resets(function.body))
            or takes_out(function, store.word)
        )
    ]


def takes_out(function: ir.Function, word: str) -> bool:
    """`self.inputs[name].pop()`, `self.inputs[name].clear()`."""
    for _, call in ir.calls(function.body):
        if call.method in ("pop", "popleft", "clear") and isinstance(call.func, ir.Attr):
            base = call.func.base
            base = base.base if isinstance(base, ir.Sub) else base
            if (base.path or "").rpartition(".")[2] == word:
                return True
    return False

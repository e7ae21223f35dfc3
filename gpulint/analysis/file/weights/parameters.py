"""Whether the objects of a class have parameters, themselves or in what they store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs
from gpulint.analysis.file.classes import ClassInfo, is_abstract
from gpulint.analysis.file.weights.counting import INTEGERS, TESTS, is_number, stands_for_number
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.names import (
    KEEPS_GRAPH,
    PAIRS,
    REDUCTIONS,
    TO_DEVICE,
    TO_HOST,
    is_loss_function,
    is_plain_module,
)
from gpulint.analysis.values.arguments import bind_sources
from gpulint.analysis.values.values import Kind


class Weights(IntEnum):
    """Whether an object has parameters, itself or in what it stores. The larger outweighs the smaller."""

    NONE = 0
    UNSEEN = 1  # something is stored of which the code does not say it, and which nothing is seen to run
    SOME = 2


def weights_of(info: ClassInfo, call: ir.Call | None = None) -> Weights:
    """Whether the objects of a class have parameters: as this call makes them, or whoever does. Without any, what they give
    has a graph only where what they are given has one."""
    known = _numbers_given(info, call)
    found: dict[frozenset[str], Weights] = info.weights
    if known not in found:
        found[known] = Weights.UNSEEN  # for a class that holds one of its own kind
        found[known] = _Stored(info, known).weights()
    return found[known]


def parts_with_weights(info: ClassInfo, call: ir.Call | None = None) -> frozenset[str]:
    """The attributes through which an object of a class has, or may have, parameters; none where others are made besides."""
    return _Stored(info, _numbers_given(info, call)).parts()


def runs_by_itself(info: ClassInfo) -> bool:
    """Whether a class says what its forward does, and does not leave it to classes below it."""
    forward = info.method("forward")
    return forward is not None and not is_abstract(forward)


def _numbers_given(info: ClassInfo, call: ir.Call | None) -> frozenset[str]:
    """The parameters of the constructor to which a call gives literals, or which it leaves at such a default."""
    init = info.method("__init__")
    if init is None or call is None:
        return frozenset()
    given = bind_sources(init, call, True)
    several = any(isinstance(arg, ir.Starred) for arg in call.args) or None in {n for n, _ in call.keywords}
    return frozenset(
        param.name
        for param in init.params
        if _is_literal(given.get(param.name, None if several else param.default))
    )


def _is_literal(expr: ir.Expr | None) -> bool:
    if isinstance(expr, (ir.Seq, ir.Op)):
        return all(_is_literal(part) for part in expr.children())
    return isinstance(expr, (ir.Const, ir.Text))


_BUILTINS = frozenset(
    "int float bool str len set dict tuple list range min max sum abs round pow zip enumerate sorted reversed isinstance "
    "hasattr print repr type map filter slice open any all divmod bytes complex super".split()
)
_DATA = frozenset({Kind.NUMBER, Kind.HOST, Kind.DEVICE, Kind.QUALIFIED, Kind.FUNCTION, Kind.CLASS})
_REGISTERS = frozenset({"register_parameter", "add_module", "register_module", "setattr"})
_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})
_DEEP = 3
_OF_TENSORS = KEEPS_GRAPH | TO_DEVICE | TO_HOST | REDUCTIONS | PAIRS


class _Stored:
    """What the objects of one class store. `numbers`: the parameters of the constructor that are literals."""

    def __init__(self, info: ClassInfo, numbers: frozenset[str]) -> None:
        self.info = info
        self.numbers = numbers
        self._open: set[tuple[int, str]] = set()  # functions and names that are being looked into

    def weights(self) -> Weights:
        found = Weights.NONE
        for one in self.info.lineage():
            for weights in (*self._of_bases(one), *self._of_methods(one)):
                found = max(found, weights)
                if found is Weights.SOME:
                    return found
        return found

    def parts(self) -> frozenset[str]:
        found: set[str] = set()
        for one in self.info.lineage():
            if any(self._of_bases(one)):
                return frozenset()
            for method in one.cls.methods.values():
                for statement in ir.statements(method.body):
                    stored = pairs(statement) if isinstance(statement, ir.Assign) else ()
                    attrs = {
                        target.attr
                        for target, value in stored
                        if isinstance(target, ir.Attr) and _belongs(method, target)
                        if self._stored(method, target.attr, value)
                    }
                    made = any(self._of_making(method, call) for call in ir.own_calls(statement))
                    if made and not attrs:
                        return frozenset()
                    found |= attrs
        return frozenset(found)

    def _of_bases(self, one: ClassInfo) -> Iterator[Weights]:
        seen = {base.cls.name for base in one.bases}
        for full in one.base_names:
            last = full.rpartition(".")[2]
            if last not in seen and last not in frameworks.PLAIN_BASES:
                yield weights_of_maker(full) if full.startswith("torch.nn.") else Weights.UNSEEN

    def _of_methods(self, one: ClassInfo) -> Iterator[Weights]:
        for method in one.cls.methods.values():
            for statement in ir.statements(method.body):
                stored = pairs(statement) if isinstance(statement, ir.Assign) else ()
                for target, value in stored:
                    if isinstance(target, ir.Attr) and _belongs(method, target):
                        yield self._stored(method, target.attr, value)
                for call in ir.own_calls(statement):
                    yield self._of_making(method, call)

    def _stored(self, method: ir.Function, attr: str, value: ir.Expr) -> Weights:
        """What is not seen and is run is a network, for all that is known; what a method that is no constructor is given,
        and nothing runs, is data."""
        given = method.name != "__init__" and any(param.name == value.path for param in method.params)
        weights = Weights.UNSEEN if given else self.of(method, value)
        if weights is Weights.UNSEEN and self._is_run(attr):
            return Weights.SOME
        return Weights.NONE if given else weights

    def _is_run(self, attr: str) -> bool:
        """Whether a method of the class calls an attribute, or one of what it has, or goes through it."""
        for one in self.info.ancestors():
            for method in one.cls.methods.values():
                own = f"{method.params[0].name}.{attr}" if method.params else ""
                for statement in ir.statements(method.body):
                    if isinstance(statement, ir.For) and own in map(_path, ir.walk(statement.iterable)):
                        return True
                    if any(self._runs(method, call, own) for call in ir.own_calls(statement)):
                        return True
        return False

    def _runs(self, method: ir.Function, call: ir.Call, own: str, depth: int = _DEEP) -> bool:
        """Whether a call runs what has the name, or hands it to code that may."""
        called = call.func.base if isinstance(call.func, ir.Sub) else call.func
        if f"{called.path}.".startswith(f"{own}."):
            return call.method not in _OF_TENSORS or called.path == own
        if own not in map(_path, call.args) or call.method in _OF_TENSORS | _BUILTINS:
            return False
        qualified = method.home.names.qualify(call.func.path or "") or ""
        function = self._function(method, call, qualified)
        if function is None or not depth:
            return not qualified.startswith("torch.")
        is_method = isinstance(call.func, ir.Attr) and _belongs(method, call.func)
        given = {name for name, value in bind_sources(function, call, is_method).items() if value.path == own}
        return any(
            self._runs(function, inner, name, depth - 1)
            for name in given
            for _, inner in ir.calls(function.body)
        )

    def _of_making(self, method: ir.Function, call: ir.Call) -> Weights:
        """What a call that makes a layer or a parameter says, wherever it is put: into a list, a dict, an `add_module`."""
        if call.method in _REGISTERS:
            return Weights.UNSEEN if call.method == "setattr" else Weights.SOME
        made = self._of_class(method, call)
        return made if made is Weights.SOME else Weights.NONE

    # --- values --------------------------------------------------------------------------------------------------

    def of(self, method: ir.Function, value: ir.Expr | None, depth: int = _DEEP) -> Weights:
        """Whether what a value denotes has parameters, or may have a graph of its own."""
        if value is None or isinstance(value, (ir.Const, ir.Text, ir.Slice, ir.LambdaExpr)):
            return Weights.NONE
        if isinstance(value, ir.Name):
            return self._of_name(method, value, depth)
        if isinstance(value, ir.Attr):
            return self._of_attribute(method, value, depth)
        if isinstance(value, ir.Sub):
            return self.of(method, value.base, depth)
        if isinstance(value, ir.Call):
            return self._of_call(method, value, depth)
        if isinstance(value, ir.Op) and (value.op in INTEGERS or value.op in TESTS - {"and", "or", "if"}):
            return Weights.NONE
        if isinstance(value, ir.Op) and value.op == "if":
            return self._of_all(method, value.operands[1:], depth)
        if isinstance(value, ir.Comp):
            return self._of_all(method, value.elements, depth)
        return self._of_all(method, value.children(), depth)

    def _of_all(self, method: ir.Function, values: Iterable[ir.Expr], depth: int) -> Weights:
        return max((self.of(method, value, depth) for value in values), default=Weights.NONE)

    def _of_name(self, method: ir.Function, name: ir.Name, depth: int) -> Weights:
        param = next((param for param in method.params if param.name == name.id), None)
        if param is not None and (method.name != "__init__" or name.id in self.numbers or is_number(param)):
            return Weights.NONE  # networks come in by the constructor, or are stored as they are given
        key = (id(method), name.id)
        if key in self._open:
            return Weights.NONE  # bound to something made of itself
        self._open.add(key)
        bound = [value for value in _bound_to(method, name.id) if value.path != name.id]
        found = self._of_all(method, bound, depth)
        self._open.discard(key)
        if param is not None:
            return found if self._counts(method, name.id) else max(found, Weights.UNSEEN)
        if bound:
            return found
        return self._of_value(method.home.free_name(method, name.id))

    def _of_attribute(self, method: ir.Function, value: ir.Attr, depth: int) -> Weights:
        if _belongs(method, value) or value.attr in ("shape", "device", "dtype"):
            return Weights.NONE  # what is stored there is looked at on its own
        qualified = method.home.names.qualify(value.path) if value.path is not None else None
        if qualified is None:
            return self.of(method, value.base, depth)
        imported = method.home.imported_value(qualified)
        return Weights.NONE if imported is None else self._of_value(imported)

    def _of_value(self, value: Any) -> Weights:
        """What a name that is bound elsewhere denotes: a function or a class has none of its own."""
        return Weights.NONE if value.kind in _DATA else Weights.UNSEEN

    # --- calls ---------------------------------------------------------------------------------------------------

    def _of_call(self, method: ir.Function, call: ir.Call, depth: int) -> Weights:
        made = self._of_class(method, call)
        if made is not None:
            return made
        requires = call.keyword("requires_grad")
        if requires is not None and not _is_false(requires):
            return Weights.SOME
        given = (*call.args, *(value for _, value in call.keywords))
        path = call.func.path or ""
        if isinstance(call.func, ir.Name) and path in _BUILTINS:
            return self._of_all(method, given, depth)
        qualified = method.home.names.qualify(path) or ""
        if qualified.partition(".")[0] in frameworks.HOST_LIBRARIES:
            return Weights.NONE
        if qualified.startswith("torch."):
            return Weights.NONE if call.method in TO_DEVICE else self._of_all(method, given, depth)
        function = self._function(method, call, qualified)
        if function is not None:
            return self._returned(function, depth) if depth else Weights.UNSEEN
        if isinstance(call.func, ir.Attr) and not qualified and not _belongs(method, call.func):
            return self._of_all(method, (call.func.base, *given), depth)
        return Weights.UNSEEN

    def _of_class(self, method: ir.Function, call: ir.Call) -> Weights | None:
        """What calling a class, or what a library makes modules by, gives; None where the call is none of these."""
        path = call.func.path
        if path is None or _belongs(method, call.func):
            return None
        home = method.home
        qualified = home.names.qualify(path)
        value = home.imported_value(qualified) if qualified is not None else None
        if value is None and "." not in path:
            value = home.free_name(method, path)
        if value is not None and value.kind is Kind.CLASS:
            return Weights.UNSEEN if value.ref is self.info else weights_of(value.ref, call)
        if qualified is None:
            return None
        if qualified.startswith("torch.nn.") and call.method in _CONTAINERS:
            return self._of_all(method, call.args, _DEEP)
        if frameworks.constructor(qualified) == "module":
            return Weights.SOME
        if qualified.endswith(".Parameter") and _is_false(call.keyword("requires_grad")):
            return Weights.NONE
        is_torch = qualified.startswith("torch.") and not qualified.startswith("torch.nn.")
        return None if is_torch or not call.method[:1].isupper() else weights_of_maker(qualified)

    def _function(self, method: ir.Function, call: ir.Call, qualified: str) -> ir.Function | None:
        if isinstance(call.func, ir.Attr) and _belongs(method, call.func):
            return self.info.method(call.method)
        value = method.home.imported_value(qualified) if qualified else None
        if value is None and isinstance(call.func, ir.Name):
            value = method.home.free_name(method, call.func.id)
        return value.ref if value is not None and value.kind is Kind.FUNCTION else None

    def _returned(self, function: ir.Function, depth: int) -> Weights:
        values = [s.value for s in ir.statements(function.body) if isinstance(s, ir.Return)]
        return max((self.of(function, value, depth - 1) for value in values), default=Weights.NONE)

    # --- numbers by their use ------------------------------------------------------------------------------------

    def _counts(self, method: ir.Function, name: str) -> bool:
        """Whether a parameter, and the attribute that it is stored as, only ever stands where a number or a word does."""
        attrs = {
            target.attr
            for statement in ir.statements(method.body)
            if isinstance(statement, ir.Assign)
            for target, value in pairs(statement)
            if isinstance(target, ir.Attr) and value.path == name
        }
        own = (
            [method] if not attrs else [m for one in self.info.ancestors() for m in one.cls.methods.values()]
        )
        return all(
            stands_for_number(
                function,
                {f"{function.params[0].name}.{attr}" for attr in attrs},
                name if function is method else "",
            )
            for function in own
            if function.params
        )


def _bound_to(function: ir.Function, name: str) -> list[ir.Expr]:
    """What a function binds a name to; of a loop, what it goes through."""
    found: list[ir.Expr] = []
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign):
            found += [value for target, value in pairs(statement) if target.path == name]
        elif isinstance(statement, ir.AugAssign) and statement.target.path == name:
            found.append(statement.value)
        elif isinstance(statement, ir.For) and name in map(_path, ir.walk(statement.target)):
            found.append(statement.iterable)
        elif isinstance(statement, ir.With):
            found += [item for item, target in statement.items if target is not None and target.path == name]
    return found


def _is_false(expr: ir.Expr | None) -> bool:
    return isinstance(expr, ir.Const) and expr.value is False


def _path(expr: ir.Expr) -> str | None:
    return expr.path


def _belongs(method: ir.Function, expr: ir.Expr) -> bool:
    """`self.x` of a method."""
    return isinstance(expr, ir.Attr) and bool(method.params) and expr.base.path == method.params[0].name


def weights_of_maker(qualified: str) -> Weights:
    """What a class of a library makes."""
    last = qualified.rpartition(".")[2]
    if qualified.startswith(frameworks.WEIGHTLESS_MAKERS):
        return Weights.NONE
    if not qualified.startswith("torch.nn."):
        return Weights.UNSEEN
    return Weights.NONE if is_plain_module(last) or is_loss_function(qualified) else Weights.SOME

"""What constructors build, as far as constants lead: their statements are followed with the numbers that they are given,
and the weights of each layer that is made on the way are added up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.questions.size.defaults import argument_defaults
from gpulint.analysis.torch import sizes
from gpulint.analysis.torch.frameworks import MODULE_BASES
from gpulint.analysis.torch.methods import GIVES_ITSELF
from gpulint.analysis.values.arguments import is_static
from gpulint.analysis.values.values import Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MOST_STATEMENTS = 3_000  # followed for one network
_MOST_ROUNDS = 64
_DEPTH = 8
_TYPICAL = 512  # what stands for a width that no constant says
_WRAPPERS = frozenset("DataParallel DistributedDataParallel DDP compile convert_sync_batchnorm".split())
_WELL_KNOWN = "a well-known model"
_CONTAINERS = frozenset("Sequential ModuleList ModuleDict".split())
# Layers that give each sample one row, whatever the samples are: nothing that grows with pictures or sequences.
_ROWS = frozenset("Linear Bilinear".split())
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b,
    "**": lambda a, b: a**b if abs(b) < 32 else 0,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_PLAIN = {"int": int, "float": float, "len": len, "max": max, "min": min, "sum": sum, "list": list, "tuple": tuple}


class _Unknown:
    """The value of what no constant says."""


UNKNOWN = _Unknown()


@dataclass(frozen=True, slots=True)
class _Named:
    """Something of a library, by its qualified name."""

    full: str


@dataclass(slots=True)
class Built:
    """What was made: `weights` are counted with 1 for each width that is not known, `about` with a typical one.

    `complete`: every layer was seen with all its widths; `seen`: every layer, if not with all its widths. `rows`: nothing but
    linear layers. `made` is where.
    """

    weights: int = 0
    about: int = 0
    layers: int = 0
    complete: bool = True
    rows: bool = True
    seen: bool = True
    convolutions: int = 0
    linear: int = 0
    made: ir.Part | None = None

    def add(self, other: Built, times: int = 1) -> None:
        """Put another's weights to these."""
        self.weights += other.weights * times
        self.about += other.about * times
        self.layers += other.layers * times
        self.complete &= other.complete
        self.rows &= other.rows
        self.seen &= other.seen
        self.convolutions += other.convolutions
        self.linear += other.linear

    @property
    def maps(self) -> bool:
        """Whether pictures or the like go in and come out: what it saves grows with them, and not with its weights."""
        return self.convolutions > 0 and not self.linear


class _Returned(Exception):  # noqa: N818 - it says that a function ends, and not that anything failed
    def __init__(self, value: object) -> None:
        self.value = value


@dataclass(slots=True)
class _Scope:
    """Where statements are followed: the names of a function, and the attributes of the object it belongs to."""

    function: ir.Function
    names: dict[str, object]
    own: dict[str, object] = field(default_factory=dict)
    info: ClassInfo | None = None


class Constructing:
    """Follows what one expression makes."""

    def __init__(self) -> None:
        self._left = _MOST_STATEMENTS
        self._depth = 0
        self._total = Built()

    def made(self, function: ir.Function, expr: ir.Expr) -> Built | None:
        """What an expression of a function builds; None where it is no network for all that can be seen."""
        value = self._value(expr, _Scope(function, {}))
        # All that was made on the way belongs to it: what is handed to a constructor becomes a part.
        return replace(self._total, made=expr) if isinstance(value, Built) else None

    def of_class(self, info: ClassInfo) -> Built | None:
        """What a class builds by its defaults alone."""
        return replace(self._instance(info, (), {}, True), made=info.cls)

    # --- statements ----------------------------------------------------------------------------------------------

    def _run(self, block: Sequence[ir.Stmt], scope: _Scope) -> None:
        for statement in block:
            self._left -= 1
            if self._left < 0:
                self._unseen()
                raise _Returned(UNKNOWN)
            self._statement(statement, scope)

    def _statement(self, statement: ir.Stmt, scope: _Scope) -> None:
        if isinstance(statement, ir.Assign):
            if statement.value is not None:
                value = self._value(statement.value, scope)
                for target in statement.targets:
                    _bind(target, value, scope)
                    if value is UNKNOWN and self._is_part(target, scope):
                        self._unseen()
        elif isinstance(statement, ir.AugAssign):
            _bind(
                statement.target,
                _computed(
                    statement.op.rstrip("="),
                    [self._value(statement.target, scope), self._value(statement.value, scope)],
                ),
                scope,
            )
        elif isinstance(statement, ir.Return):
            raise _Returned(UNKNOWN if statement.value is None else self._value(statement.value, scope))
        elif isinstance(statement, ir.ExprStmt):
            self._value(statement.value, scope)
        elif isinstance(statement, ir.If):
            self._branch(statement, scope)
        elif isinstance(statement, ir.For):
            self._loop(statement, scope)
        elif isinstance(statement, ir.While):
            self._unseen()
        elif isinstance(statement, ir.Jump):
            if statement.kind == "raise":
                raise _Returned(UNKNOWN)
        else:
            for block in statement.blocks()[:1]:
                self._run(block, scope)

    def _branch(self, statement: ir.If, scope: _Scope) -> None:
        test = self._value(statement.test, scope)
        if isinstance(test, (bool, int, float, str, list, tuple)) or test is None:
            self._run(statement.body if test else statement.orelse, scope)
            return
        # The larger one counts, and what both may have bound is as the second leaves it.
        before, largest = replace(self._total), replace(self._total)
        returned: _Returned | None = None
        for block in (statement.body, statement.orelse):
            self._total = replace(before)
            try:
                self._run(block, scope)
            except _Returned as ended:
                returned = ended if block is statement.body else returned
            if (self._total.about, self._total.layers) > (largest.about, largest.layers):
                largest = replace(self._total)
            largest.complete &= self._total.complete
            largest.rows &= self._total.rows
            largest.seen &= self._total.seen
        self._total = largest
        self._total.complete = False
        if returned is not None and statement.orelse:
            raise returned

    def _loop(self, statement: ir.For, scope: _Scope) -> None:
        through = self._value(statement.iterable, scope)
        if isinstance(through, (list, tuple, range)) and len(through) <= _MOST_ROUNDS:
            for item in through:
                _bind(statement.target, item, scope)
                self._run(statement.body, scope)
        else:
            _bind(statement.target, UNKNOWN, scope)
            before = self._total.layers
            self._run(statement.body, scope)
            if self._total.layers != before:
                self._unseen()

    def _is_part(self, target: ir.Expr, scope: _Scope) -> bool:
        """Whether an attribute is called somewhere in its class, as networks are."""
        if scope.info is None or not isinstance(target, ir.Attr) or target.path is None:
            return False
        attr = target.path.partition(".")[2]
        for one in scope.info.ancestors():
            for method in one.cls.methods.values():
                own = method.params[0].name if method.params else ""
                place = f"{own}.{attr}"
                if any((c.func.path or "").startswith(place) and c.func.path in (place, f"{place}.forward") for _, c in ir.calls(method.body)):
                    return True
        return False

    def _unseen(self) -> None:
        self._total.complete = self._total.seen = False

    # --- expressions ---------------------------------------------------------------------------------------------

    def _value(self, expr: ir.Expr, scope: _Scope) -> object:
        if isinstance(expr, ir.Const):
            return expr.value
        if isinstance(expr, (ir.Name, ir.Attr)):
            return self._place(expr, scope)
        if isinstance(expr, ir.Op):
            if expr.op == "if":
                test = self._value(expr.operands[0], scope)
                if test is UNKNOWN:
                    return UNKNOWN
                return self._value(expr.operands[1 if test else 2], scope)
            return _computed(expr.op, [self._value(operand, scope) for operand in expr.operands])
        if isinstance(expr, ir.Seq):
            return self._display(expr, scope)
        if isinstance(expr, ir.DictDisplay):
            return self._table(expr, scope)
        if isinstance(expr, ir.Sub):
            return _item(self._value(expr.base, scope), self._value(expr.index, scope))
        if isinstance(expr, ir.Comp):
            return self._comprehension(expr, scope)
        if isinstance(expr, ir.Call):
            return self._call(expr, scope)
        if isinstance(expr, (ir.LambdaExpr, ir.Text)):
            return _Named("")
        return UNKNOWN

    def _display(self, expr: ir.Seq, scope: _Scope) -> object:
        items: list[object] = []
        for item in expr.items:
            value = self._value(item.value if isinstance(item, ir.Starred) else item, scope)
            if not isinstance(item, ir.Starred):
                items.append(value)
            elif isinstance(value, (list, tuple)):
                items += value
        return items

    def _table(self, expr: ir.DictDisplay, scope: _Scope) -> object:
        found: dict[object, object] = {}
        for key, value in expr.pairs:
            if not isinstance(key, ir.Const) or not isinstance(key.value, (str, int)):
                return UNKNOWN
            # A class or a layer by name is made where the table is read, and not all of them here.
            found[key.value] = UNKNOWN if isinstance(value, ir.Call) else self._value(value, scope)
        return found

    def _comprehension(self, expr: ir.Comp, scope: _Scope) -> object:
        target, iterable, _ = expr.clauses[0]
        through = self._value(iterable, scope)
        rounds = through if isinstance(through, (list, tuple, range)) and len(expr.clauses) == 1 else None
        found: list[object] = []
        before = self._total.layers
        for item in list(rounds)[:_MOST_ROUNDS] if rounds is not None else [UNKNOWN]:
            _bind(target, item, scope)
            found.append(self._value(expr.elements[-1], scope))
        if rounds is None:
            if self._total.layers != before:
                self._unseen()
            return UNKNOWN
        return found

    def _place(self, expr: ir.Name | ir.Attr, scope: _Scope) -> object:
        path = expr.path or ""
        head, _, rest = path.partition(".")
        if head in scope.names:
            if not rest:
                return scope.names[head]
        elif not rest:
            return self._bound_outside(scope.function, head)
        params = scope.function.params
        if scope.info is not None and params and params[0].name == head:
            return scope.own.get(rest, UNKNOWN)
        home: FileAnalysis = scope.function.home
        full = home.names.qualify(path) if head not in scope.names else None
        if full is not None and rest:
            return _Named(full)
        return argument_defaults(home).get(rest, UNKNOWN) if rest else UNKNOWN

    def _bound_outside(self, function: ir.Function, name: str) -> object:
        """The number or text that a name is bound to, once, in the function or around it."""
        home: FileAnalysis = function.home
        scope: ir.Function | None = function
        while scope is not None:
            if name in home.evidence[scope].assigned or any(param.name == name for param in scope.params):
                values = [
                    s.value
                    for s in ir.statements(scope.body)
                    if isinstance(s, ir.Assign) and any(target.path == name for target in s.targets)
                ]
                (only,) = values if len(values) == 1 else (None,)
                simple = isinstance(only, (ir.Const, ir.Op, ir.Seq, ir.Name, ir.Attr, ir.DictDisplay))
                if simple and self._depth < _DEPTH and only is not None:
                    self._depth += 1
                    try:
                        return self._value(only, _Scope(scope, {}))
                    finally:
                        self._depth -= 1
                return UNKNOWN
            scope = scope.parent
        if name in home.classes:
            return home.classes[name]
        full = home.names.qualify(name)
        found = home.imported_value(full) if full is not None else None
        if found is not None and found.kind is Kind.CLASS:
            return found.ref
        return _Named(full) if full is not None else UNKNOWN

    # --- calls ---------------------------------------------------------------------------------------------------

    def _call(self, call: ir.Call, scope: _Scope) -> object:
        name = call.method
        if name in GIVES_ITSELF and isinstance(call.func, ir.Attr):
            return self._value(call.func.base, scope)
        if name == "__init__" and isinstance(call.func, ir.Attr):
            return self._base(call, scope)
        args = self._display(ir.Seq(call.origin, "list", call.args), scope)
        given = {key: self._value(value, scope) for key, value in call.keywords if key is not None}
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
            return self._instance(target, positional, given, False)
        if isinstance(target, ir.Function):
            return self._enter(target, positional, given, {}, None, skip=0)
        return self._plain(call, positional, scope, home)

    def _target(self, call: ir.Call, scope: _Scope) -> object:
        """The class, the function or the library's name that a call is of; None where that is not known."""
        home: FileAnalysis = scope.function.home
        path = call.func.path
        if path is None:
            return self._from_table(call.func, scope)
        if path.partition(".")[0] in scope.names or isinstance(call.func, ir.Attr):
            known = self._value(call.func, scope)
            if isinstance(known, ClassInfo):
                return known
            if isinstance(known, _Named):
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

    def _from_table(self, func: ir.Expr, scope: _Scope) -> str | None:
        """`models.__dict__[name](…)` of torchvision."""
        base = func.base.path if isinstance(func, ir.Sub) else None
        if base is None or not base.endswith(".__dict__") or not isinstance(func, ir.Sub):
            return None
        home: FileAnalysis = scope.function.home
        full, name = home.names.qualify(base.removesuffix(".__dict__")), self._value(func.index, scope)
        return f"{full}.{name}" if full == "torchvision.models" and isinstance(name, str) else None

    def _own_method(self, call: ir.Call, scope: _Scope) -> ir.Function | None:
        path, params = call.func.path or "", scope.function.params
        head, _, rest = path.partition(".")
        if scope.info is None or not params or params[0].name != head or "." in rest or not rest:
            return None
        return scope.info.method(rest)

    def _base(self, call: ir.Call, scope: _Scope) -> object:
        """`super().__init__(…)`."""
        if scope.info is None:
            return UNKNOWN
        args = call.args[1:] if call.func.path is not None else call.args
        positional = [self._value(arg, scope) for arg in args if not isinstance(arg, ir.Starred)]
        given = {key: self._value(value, scope) for key, value in call.keywords if key is not None}
        owner = next((one for one in scope.info.ancestors() if scope.function in one.cls.methods.values()), None)
        for base in owner.bases if owner is not None else ():
            method = base.method("__init__")
            if method is not None:
                self._enter(method, positional, given, scope.own, base, skip=1)
        lasts = {name.rpartition(".")[2] for name in (owner.base_names if owner is not None else ())}
        known = {base.cls.name for base in (owner.bases if owner is not None else ())}
        if lasts - known - MODULE_BASES - {"object", "ABC"}:
            self._unseen()
        return UNKNOWN

    def _instance(
        self, info: ClassInfo, positional: Sequence[object], given: Mapping[str, object], defaults: bool
    ) -> Built:
        outer, self._total = self._total, Built()
        method = info.method("__init__")
        if method is not None:
            owner = next(one for one in info.ancestors() if "__init__" in one.cls.methods)
            self._enter(method, positional, given, {}, owner if owner.home is info.home else owner, skip=1)
        elif not info.is_module or any(
            name.rpartition(".")[2] not in MODULE_BASES for name in info.base_names
        ):
            self._unseen()
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
        if self._depth >= _DEPTH or self._left <= 0:
            self._unseen()
            return UNKNOWN
        params = [param for param in function.params if param.kind in ("normal", "keyword")]
        names: dict[str, object] = dict.fromkeys((param.name for param in function.params), UNKNOWN)
        scope = _Scope(function, names, own, info)
        for param in params[skip:]:
            if param.default is not None:
                names[param.name] = self._value(param.default, _Scope(function, {}))
        names.update(zip((param.name for param in params[skip:]), positional, strict=False))
        names.update({key: value for key, value in given.items() if key in names})
        rest = next((param for param in function.params if param.kind == "star"), None)
        if rest is not None:
            names[rest.name] = list(positional[len(params) - skip :])
        self._depth += 1
        try:
            self._run(function.body, scope)
        except _Returned as ended:
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
        scope: _Scope,
    ) -> object:
        last = full.rpartition(".")[2]
        if last in _WRAPPERS:
            return positional[0] if positional else UNKNOWN
        if full.startswith("torch.nn.") and last == "Parameter":
            product = _product(call.args[0] if call.args else None, self, scope)
            if not product[2]:
                self._unseen()
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
            self._unseen()
        return self._plain(call, positional, scope, scope.function.home)

    def _layer(self, last: str, positional: list[object], given: Mapping[str, object]) -> Built:
        if last in _CONTAINERS:
            found = Built()
            for item in _flat(positional):
                if isinstance(item, Built):
                    found.add(item)
            return found  # its parts were counted when they were made
        if last in ("TransformerEncoder", "TransformerDecoder") and isinstance(positional[:1], list):
            layer = positional[0] if positional else UNKNOWN
            times = positional[1] if len(positional) > 1 else given.get("num_layers")
            if isinstance(layer, Built) and isinstance(times, int):
                self._total.add(layer, times - 1)
                return layer
            self._unseen()
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

    def _plain(
        self, call: ir.Call, positional: list[object], scope: _Scope, home: FileAnalysis
    ) -> object:
        name = call.method
        if name == "getattr" and positional and isinstance(positional[0], _Named):
            if positional[0].full in ("torch", "torch.nn.functional"):
                return positional[0]
        base = self._value(call.func.base, scope) if isinstance(call.func, ir.Attr) else UNKNOWN
        if isinstance(base, list) and name in ("append", "extend") and positional:
            if name == "append":
                base.append(positional[0])
            elif isinstance(positional[0], (list, tuple)):
                base.extend(positional[0])
            return UNKNOWN
        try:
            if isinstance(call.func, ir.Name):
                return _builtin(name, positional)
        except (TypeError, ValueError):
            return UNKNOWN
        if name[:1].isupper() and home.names.qualify(call.func.path or "") is None:
            self._unseen()  # a class that comes from nobody knows where
        elif isinstance(call.func, (ir.Call, ir.Sub)) or (call.func.path or "") in scope.names:
            self._unseen()  # `table[name](…)`, `getattr(module, name)(…)`, `base(…)` of a parameter
        elif isinstance(call.func, ir.Attr) and name[:1].isupper():
            self._unseen()
        return UNKNOWN


def _builtin(name: str, positional: list[object]) -> object:
    if any(value is UNKNOWN for value in positional):
        return UNKNOWN
    if name == "range":
        numbers = [value for value in positional if isinstance(value, int)]
        return range(*numbers) if 0 < len(numbers) == len(positional) <= 3 else UNKNOWN
    if name in ("zip", "enumerate", "reversed"):
        through = [list(value) for value in positional if isinstance(value, (list, tuple, range))]
        if len(through) != len(positional) or not through:
            return UNKNOWN
        if name == "reversed":
            return through[0][::-1]
        return list(enumerate(through[0])) if name == "enumerate" else list(zip(*through, strict=False))
    return _PLAIN[name](*positional) if name in _PLAIN and positional else UNKNOWN  # type: ignore[operator]


def _product(data: ir.Expr | None, follow: Constructing, scope: _Scope) -> tuple[int, int, bool]:
    """The numbers in `torch.zeros(3, width)`."""
    if not isinstance(data, ir.Call):
        return 1, _TYPICAL, False
    values = [follow._value(arg, scope) for arg in data.args]
    size = data.keyword("size")
    values += [follow._value(size, scope)] if size is not None else []
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


def _flat(values: Sequence[object]) -> list[object]:
    found: list[object] = []
    for value in values:
        found += _flat(value) if isinstance(value, (list, tuple)) else [value]
    return found


def _bind(target: ir.Expr, value: object, scope: _Scope) -> None:
    if isinstance(target, ir.Name):
        scope.names[target.id] = value
    elif isinstance(target, ir.Attr) and target.path is not None:
        scope.own[target.path.partition(".")[2]] = value
    elif isinstance(target, ir.Seq):
        items = value if isinstance(value, (list, tuple)) and len(value) == len(target.items) else None
        for position, part in enumerate(target.items):
            _bind(part, items[position] if items is not None else UNKNOWN, scope)


def _item(base: object, index: object) -> object:
    if isinstance(base, (list, tuple)) and isinstance(index, int) and -len(base) <= index < len(base):
        return base[index]
    if isinstance(base, dict) and isinstance(index, (str, int)):
        return base.get(index, UNKNOWN)
    return UNKNOWN


def _computed(op: str, values: list[object]) -> object:
    if op in ("and", "or"):
        ends = op == "or"
        for value in values:
            if value is not UNKNOWN and bool(value) is ends:
                return value
        return UNKNOWN if UNKNOWN in values else values[-1]
    if any(value is UNKNOWN for value in values):
        return UNKNOWN
    if op == "not":
        return not values[0]
    if op in ("is", "is not"):
        return (values[0] is values[1]) is (op == "is")
    if op in ("in", "not in") and isinstance(values[1], (list, tuple, str, dict)):
        try:
            return (values[0] in values[1]) is (op == "in")  # type: ignore[operator]
        except TypeError:
            return UNKNOWN
    if op == "neg" and isinstance(values[0], (int, float)):
        return -values[0]
    return _arithmetic(op, values)


def _arithmetic(op: str, values: list[object]) -> object:
    left, right = values if len(values) == 2 else (UNKNOWN, UNKNOWN)
    if op in ("==", "!="):
        return (left == right) is (op == "==")
    if op == "+" and isinstance(left, list) and isinstance(right, list):
        return left + right
    if op == "*" and isinstance(left, list) and isinstance(right, int) and right <= _MOST_ROUNDS:
        return left * right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)) and op in _ARITHMETIC:
        try:
            return _ARITHMETIC[op](left, right)
        except (ZeroDivisionError, OverflowError):
            return UNKNOWN
    return UNKNOWN

"""What a function's text proves about its names before any value is followed: one walk, no flow."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpulint.analysis import ir

MODULE_METHODS = frozenset(
    (
        "parameters named_parameters train eval requires_grad_ modules named_modules children state_dict_ "
        "apply_"
    ).split()
)

_BACKWARD = re.compile(r"(?:^|_)backward(?:_|$)|^update_params$")
_NO_BACKWARD = re.compile(
    r"^(?:require|register|supports|check|is|has|can|on|set|before|after|pre|post)_|hook"
)


def runs_backward(method: str) -> bool:
    """Whether a function of this name runs a backward through what it is given."""
    return bool(_BACKWARD.search(method)) and not _NO_BACKWARD.search(method)


@dataclass(slots=True)
class Fields:
    """The constant keys and the attributes of a name on which backward is called: `out["loss"]`, `out.loss`."""

    keys: tuple[object, ...] = ()
    attributes: tuple[str, ...] = ()

    def add(self, expr: ir.Expr) -> None:
        if isinstance(expr, ir.Sub) and isinstance(expr.index, ir.Const):
            if expr.index.value not in self.keys:
                self.keys += (expr.index.value,)
        elif isinstance(expr, ir.Attr) and expr.attr not in self.attributes:
            self.attributes += (expr.attr,)


class Evidence:
    """Facts about the names of one function.

    backward: paths that a backward is called on; scalars: those on which it is called without arguments, which only a
    scalar allows; modules: paths that are treated as `nn.Module`; called: the last names of everything called;
    indexed: names of which a fixed position is taken, `xs[0]`: sequences, not loaders; chosen: the paths of base and
    index of an entry that backward is called on without arguments, `out[self.metric].backward()`.
    """

    __slots__ = (
        "_callees",
        "_inputs",
        "_made",
        "_produced",
        "_summed",
        "_sums",
        "accumulates",
        "assigned",
        "backward",
        "called",
        "chosen",
        "declared",
        "evals",
        "fields",
        "frozen",
        "has_loop",
        "indexed",
        "modules",
        "optimizers",
        "records",
        "scalars",
        "stored",
        "strings",
        "terms",
        "texts",
        "thawed",
        "trains",
        "words",
    )

    def __init__(self, function: ir.Function) -> None:
        self.backward: set[str] = set()
        self.scalars: set[str] = set()
        self.fields: dict[str, Fields] = {}
        self.chosen: set[tuple[str, str]] = set()
        self.modules: set[str] = set()
        self.optimizers: set[str] = set()
        self.called: set[str] = set()
        self.assigned: set[str] = set()
        self.declared: dict[str, str] = {}
        self.stored: set[str] = set()
        self.words: set[str] = set()
        self.frozen: set[str] = set()
        self.thawed: set[str] = set()
        self.has_loop = False
        self.indexed: set[str] = set()
        self.accumulates = False
        self.terms: set[str] = set()
        self.evals: set[str] = set()
        self.trains: set[str] = set()
        self.strings: set[str] = set()
        self.texts: set[str] = set()
        self.records: set[str] = set()
        self._sums: list[tuple[str, ir.Expr]] = []
        self._summed: list[str] = []
        self._inputs: set[str] = set()
        self._made: dict[str, set[str]] = {}
        self._callees: set[str] = set()
        self._produced: dict[str, list[str]] = {}
        self._scan(function.body)
        self._find_terms()

    def backward_by_return(self, function: ir.Function) -> None:
        """A framework calls backward on what the function returns: the loss, the first of a tuple, `["loss"]` of a dict."""
        for statement in ir.statements(function.body):
            value = statement.value if isinstance(statement, ir.Return) else None
            options = [value] if value is not None else []
            while options:
                option = options.pop()
                if isinstance(option, ir.Op) and option.op == "if":
                    options += option.operands[1:]
                elif isinstance(option, ir.Seq) and option.items:
                    options.append(option.items[0])
                elif isinstance(option, ir.DictDisplay):
                    options += [v for k, v in option.pairs if isinstance(k, ir.Const) and k.value == "loss"]
                elif option.path is not None:
                    self.backward.add(option.path)
                    self.scalars.add(option.path)
        self._find_terms()

    def loss_makers(self) -> set[str]:
        """The callables whose results backward is called on: `compute_loss` of `loss = compute_loss(out, y)`."""
        return {callee for name in self.backward for callee in self._made.get(name, ())}

    def _find_terms(self) -> None:
        """The summands of what backward is called on: tensors with a graph, wherever they came from."""
        wanted = set(self.backward)
        for _ in range(3):
            for target, value in self._sums:
                if target in wanted or target in self.terms:
                    self.terms |= {leaf.path for leaf in additive_terms(value) if leaf.path is not None}
        self.terms = (self.terms | set(self._summed)) - self.backward
        inputs = set(self._inputs) if self.backward else set()
        for name in inputs:
            for callee in self._produced.get(name, ()):
                self.modules.add(callee)
        if self.backward:
            self.modules |= self._callees

    def _loss_call(self, call: ir.Call) -> None:
        """What goes into a loss comes out of a model: `out` and its maker in `criterion(out, y)`, `head` in `ce(head(z), y)`."""
        stack: list[ir.Expr] = list(call.args[:1])
        while stack:
            expr = stack.pop()
            if isinstance(expr, ir.Name):
                self._inputs.add(expr.id)
            elif isinstance(expr, ir.Call) and isinstance(expr.func, ir.Name):
                self._callees.add(expr.func.id)
                stack += expr.args[:1]
            elif isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
                if (
                    expr.func.path is not None
                    and expr.func.path.count(".") == 1
                    and expr.func.path.startswith("self.")
                ):
                    self._callees.add(expr.func.path)
                    stack += expr.args[:1]
                elif expr.method in (
                    "view",
                    "reshape",
                    "squeeze",
                    "float",
                    "flatten",
                    "transpose",
                    "permute",
                ):
                    stack.append(expr.func.base)
            elif isinstance(expr, (ir.Sub, ir.Attr)):
                stack.append(expr.base)

    def _scan(self, block: list[ir.Stmt]) -> None:
        for statement in ir.statements(block):
            if isinstance(statement, (ir.For, ir.While)):
                self.has_loop = True
                if isinstance(statement, ir.For):
                    self._freezing(statement)
            elif isinstance(statement, ir.Scope):
                for name in statement.names:
                    self.declared[name] = statement.kind
            if isinstance(statement, ir.AugAssign):
                self.accumulates = True
                if statement.target.path is not None:
                    self._sums.append((statement.target.path, statement.value))
            elif isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Op):
                self._sums += [(t.path, statement.value) for t in statement.targets if t.path is not None]
            if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call):
                callee = statement.value.func.path
                if (
                    callee is not None
                    and len(statement.targets) == 1
                    and isinstance(statement.targets[0], ir.Name)
                ):
                    self._made.setdefault(statement.targets[0].id, set()).add(callee)
                self._made_by(statement, statement.value)
                if callee is not None and (
                    "." not in callee or (callee.startswith("self.") and callee.count(".") == 1)
                ):
                    for target in targets(statement):
                        if isinstance(target, ir.Name):
                            self._produced.setdefault(target.id, []).append(callee)
            for target in targets(statement):
                if isinstance(target, ir.Sub) and isinstance(target.index, (ir.Name, ir.Attr)):
                    self.accumulates = True
                if target.path is not None:
                    (self.assigned if isinstance(target, ir.Name) else self.stored).add(target.path)
            for root in statement.expressions():
                self._expression(root)

    def _made_by(self, statement: ir.Assign, call: ir.Call) -> None:
        """`records = defaultdict(list)`, which no module takes for its state; `layer.weight = Parameter(w, requires_grad=False)`."""
        flag = call.keyword("requires_grad") if call.method == "Parameter" else None
        for target in statement.targets:
            if call.method in ("defaultdict", "Counter") and target.path is not None:
                self.records.add(target.path)
            elif isinstance(flag, ir.Const) and flag.value is False and isinstance(target, ir.Attr):
                if target.attr == "weight" and target.base.path is not None:
                    self.frozen.add(target.base.path)

    def _freezing(self, loop: ir.For) -> None:
        """`for p in model.parameters(): p.requires_grad = False`, or `= True`."""
        iterable = loop.iterable
        if not (isinstance(iterable, ir.Call) and iterable.method in ("parameters", "named_parameters")):
            return
        owner = iterable.func.base.path if isinstance(iterable.func, ir.Attr) else None
        if owner is None:
            return
        for statement in ir.statements(loop.body):
            if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Const):
                for target in statement.targets:
                    if isinstance(target, ir.Attr) and target.attr == "requires_grad":
                        (self.thawed if statement.value.value else self.frozen).add(owner)
            elif isinstance(statement, ir.Assign):
                for target in statement.targets:
                    if isinstance(target, ir.Attr) and target.attr == "requires_grad":
                        self.thawed.add(owner)
            for _, call in ir.calls([statement]):
                if call.method == "requires_grad_":
                    off = (
                        bool(call.args) and isinstance(call.args[0], ir.Const) and call.args[0].value is False
                    )
                    (self.frozen if off else self.thawed).add(owner)

    def _expression(self, root: ir.Expr) -> None:
        for expr in ir.walk(root):
            if isinstance(expr, ir.Call):
                self._call(expr)
            elif isinstance(expr, ir.Comp):
                self.has_loop = True
            elif isinstance(expr, ir.Op):
                self._text(expr)
            elif isinstance(expr, ir.LambdaExpr):
                self._scan(expr.function.body)
            elif isinstance(expr, ir.Sub):
                if isinstance(expr.base, ir.Name) and isinstance(expr.index, ir.Const):
                    if isinstance(expr.index.value, int):
                        self.indexed.add(expr.base.id)
            elif isinstance(expr, ir.Name):
                self.words.add(expr.id)
            elif isinstance(expr, ir.Const):
                if isinstance(expr.value, str) and len(expr.value) < 64:
                    self.strings.add(expr.value)
                    if "out of memory" in expr.value.lower():
                        self.words.add("OutOfMemoryError")
            elif isinstance(expr, ir.Attr):
                self.words.add(expr.attr)

    def _text(self, op: ir.Op) -> None:
        """`"answer: " + x`: x is a text."""
        if op.op == "+" and any(
            isinstance(part, ir.Const) and isinstance(part.value, str) for part in op.operands
        ):
            self.texts |= {part.path for part in op.operands if part.path is not None}

    def _call(self, call: ir.Call) -> None:
        method = call.method
        self.called.add(method)
        if method in ("append", "extend", "insert", "appendleft", "update", "add", "put", "setdefault"):
            self.accumulates = True
        if LOSSY.search(method):
            self._loss_call(call)
        func = call.func
        if isinstance(func, ir.Attr) and func.base.path is None and method in ("eval", "train"):
            func = _unmoved(func)
        if isinstance(func, ir.Attr) and func.base.path is not None:
            base = func.base.path
            if method in MODULE_METHODS and len(call.args) <= 1:
                self.modules.add(base)
                if method == "eval":
                    self.evals.add(base)
                elif method == "train":
                    self.trains.add(base)
            elif method == "zero_grad":
                self.optimizers.add(base)
        if runs_backward(method):
            self._backward(call)

    def _backward(self, call: ir.Call) -> None:
        func = call.func
        if isinstance(func, ir.Attr) and call.method == "backward":
            base = unscaled(func.base)
            if isinstance(base, ir.Op):
                self._summed += [term.path for term in additive_terms(base) if term.path is not None]
            if isinstance(base, ir.Sub) and not call.args and call.keyword("gradient") is None:
                self._choose(base)
            engine = bool(call.args) and unscaled(call.args[0]).path is not None
            if base.path is not None and not engine:
                self.backward.add(base.path)
                self._field(base)
                if not call.args and call.keyword("gradient") is None:
                    self.scalars.add(base.path)
        for arg in call.args[:1]:
            value = unscaled(arg)
            if value.path is not None:
                self.backward.add(value.path)
                self.scalars.add(value.path)
                self._field(value)

    def _choose(self, entry: ir.Sub) -> None:
        if entry.base.path is not None and entry.index.path is not None:
            self.chosen.add((entry.base.path, entry.index.path))

    def _field(self, expr: ir.Expr) -> None:
        if isinstance(expr, (ir.Sub, ir.Attr)) and isinstance(expr.base, ir.Name):
            self.fields.setdefault(expr.base.id, Fields()).add(expr)


def _unmoved(func: ir.Attr) -> ir.Attr:
    """`model.eval` for the callee of `model.to(device).eval()`."""
    base = func.base
    while isinstance(base, ir.Call) and isinstance(base.func, ir.Attr) and base.method in _MOVING:
        base = base.func.base
    return ir.Attr(func.node, base, func.attr)


_MOVING = frozenset("to cuda cpu half float bfloat16 double requires_grad_".split())


def unscaled(expr: ir.Expr) -> ir.Expr:
    """`loss` in `scaler.scale(loss)`, `loss / n`, `(loss * k).mean()`: the value that backward goes through."""
    while True:
        if isinstance(expr, ir.Call):
            if expr.method == "scale" and expr.args:
                expr = expr.args[0]
            elif isinstance(expr.func, ir.Attr) and expr.method in ("mean", "sum") and not expr.args:
                expr = expr.func.base
            else:
                return expr
        elif isinstance(expr, ir.Op) and expr.op in ("/", "*") and len(expr.operands) == 2:
            left, right = expr.operands
            if left.path is not None:
                expr = left
            elif right.path is not None and isinstance(left, ir.Const):
                expr = right
            else:
                return expr
        else:
            return expr


def targets(statement: ir.Stmt) -> list[ir.Expr]:
    """The places a statement binds by plain assignment, tuples taken apart."""
    roots: list[ir.Expr] = []
    if isinstance(statement, ir.Assign):
        roots = list(statement.targets) if statement.value is not None else []
    elif isinstance(statement, ir.For):
        roots = [statement.target]
    elif isinstance(statement, ir.With):
        roots = [target for _, target in statement.items if target is not None]
    result: list[ir.Expr] = []
    while roots:
        target = roots.pop()
        if isinstance(target, ir.Seq):
            roots.extend(target.items)
        elif isinstance(target, ir.Wrapper):
            roots.append(target.value)
        else:
            result.append(target)
    return result


def arithmetic_leaves(expr: ir.Expr) -> list[ir.Expr]:
    """The operands of a sum: `total`, `loss` and `n` in `total + loss * n`."""
    leaves: list[ir.Expr] = []
    stack = [expr]
    while stack:
        current = stack.pop()
        if isinstance(current, ir.Op) and current.op in ("+", "-", "*", "/", "neg"):
            stack.extend(reversed(current.operands))
        elif isinstance(current, ir.Op) and current.op == "if":
            stack.extend(reversed(current.operands[1:]))
        else:
            leaves.append(current)
    return leaves


def additive_terms(expr: ir.Expr) -> list[ir.Expr]:
    """The summands of an expression, a constant or configured factor taken off: `a`, `b` in `a + 0.5 * b`."""
    terms: list[ir.Expr] = []
    stack = [expr]
    while stack:
        current = stack.pop()
        if isinstance(current, ir.Op) and current.op in ("+", "-", "neg"):
            stack.extend(current.operands)
        elif isinstance(current, ir.Op) and current.op in ("*", "/"):
            left, right = current.operands
            if isinstance(left, (ir.Const, ir.Attr)) and current.op == "*":
                stack.append(right)
            elif isinstance(right, (ir.Const, ir.Attr)) or current.op == "/":
                stack.append(left)
        else:
            terms.append(current)
    return terms


def grown(target: ir.Expr, value: ir.Expr) -> ir.Expr:
    """The branch that lets the target grow: `t + x` of `t = x if t is None else t + x`; else the value itself."""
    if isinstance(value, ir.Op) and value.op == "if" and not _is_periodic(value.operands[0]):
        for branch in value.operands[1:]:
            if is_accumulation(target, branch) or is_cat(target, branch):
                return branch
    return value


def is_accumulation(target: ir.Expr, value: ir.Expr) -> bool:
    """Whether `target = value` adds to the target: `t = t + x`, `t = (t * n + x) / (n + 1)`, `t = t + [x]`."""
    if target.path is None or not isinstance(value, ir.Op):
        return False
    return any(leaf.path == target.path for leaf in arithmetic_leaves(value))


def resets(block: list[ir.Stmt]) -> frozenset[str]:
    """The paths that a loop's body starts afresh: `x = 0`, `x.clear()`, `del x[:]`, `x.pop(0)`, `x = x.detach()`."""
    found: set[str] = set()
    first = _first_values(block)
    for statement in ir.statements(block):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target in targets(statement):
                if (
                    target.path is not None
                    and id(statement) not in first
                    and not is_accumulation(target, statement.value)
                    and not is_cat(target, statement.value)
                ):
                    found.add(target.path)
                elif isinstance(target, ir.Sub) and isinstance(target.index, ir.Slice) and target.base.path:
                    found.add(target.base.path)
        elif isinstance(statement, ir.Delete):
            for target in statement.targets:
                base = target.base if isinstance(target, ir.Sub) else target
                if base.path is not None:
                    found.add(base.path)
        for root in statement.expressions():
            for expr in ir.walk(root):
                if (
                    isinstance(expr, ir.Call)
                    and isinstance(expr.func, ir.Attr)
                    and expr.func.base.path is not None
                    and expr.method in _EMPTYING
                ):
                    found.add(expr.func.base.path)
    return frozenset(found)


def _first_values(block: list[ir.Stmt]) -> frozenset[int]:
    """The assignments that only start a sum: `x = v` of `if x is None: x = v` `else: x = x + v`, by identity."""
    found: set[int] = set()
    for statement in ir.statements(block):
        if not isinstance(statement, ir.If) or _is_periodic(statement.test):
            continue
        for one, other in ((statement.body, statement.orelse), (statement.orelse, statement.body)):
            grows = {target.path for part in ir.statements(other) for target in _growing(part)}
            asked = _asked_for_none(statement.test)
            for part in one:
                if isinstance(part, ir.Assign) and len(part.targets) == 1 and part.value is not None:
                    path = part.targets[0].path
                    if not isinstance(part.value, ir.Const) and path is not None:
                        if path in grows or (path == asked and one is statement.body):
                            found.add(id(part))
    return frozenset(found)


def _growing(statement: ir.Stmt) -> list[ir.Expr]:
    if isinstance(statement, ir.AugAssign):
        return [statement.target]
    if isinstance(statement, ir.Assign) and statement.value is not None:
        return [
            target
            for target in statement.targets
            if is_accumulation(target, statement.value) or is_cat(target, statement.value)
        ]
    return []


def _is_periodic(test: ir.Expr) -> bool:
    return any(isinstance(part, ir.Op) and part.op == "%" for part in ir.walk(test))


def _asked_for_none(test: ir.Expr) -> str | None:
    """`x` in `x is None`."""
    if isinstance(test, ir.Op) and test.op == "is" and isinstance(test.operands[1], ir.Const):
        return test.operands[0].path if test.operands[1].value is None else None
    return None


def assigned(block: list[ir.Stmt]) -> frozenset[str]:
    """The paths that the block binds, sums included."""
    return frozenset(
        target.path for statement in ir.statements(block) for target in targets(statement) if target.path
    )


def cuts(block: list[ir.Stmt], detachers: frozenset[str] = frozenset()) -> frozenset[str]:
    """The paths whose graph the block cuts somewhere: `h = h.detach()`, `h = repackage(h)`, `h.detach_()`, `h.data`."""
    found: set[str] = set()
    for statement in ir.statements(block):
        if (
            isinstance(statement, ir.Assign)
            and statement.value is not None
            and _cuts(statement.value, detachers)
        ):
            found |= {target.path for target in targets(statement) if target.path is not None}
        for root in statement.expressions():
            for expr in ir.walk(root):
                if (
                    isinstance(expr, ir.Call)
                    and expr.method in ("detach_", "detach_state")
                    and isinstance(expr.func, ir.Attr)
                ):
                    if expr.func.base.path is not None:
                        found.add(expr.func.base.path)
    return frozenset(found)


def _cuts(value: ir.Expr, detachers: frozenset[str]) -> bool:
    for part in ir.walk(value):
        if isinstance(part, ir.Attr) and part.attr in ("detach", "data", "detach_"):
            return True
        if isinstance(part, ir.Call) and (
            "detach" in part.method or "repackage" in part.method or part.method in detachers
        ):
            return True
    return False


def is_cat(target: ir.Expr, value: ir.Expr) -> bool:
    """`x = torch.cat([x, y])` lets x grow."""
    value = grown(target, value) if isinstance(value, ir.Op) else value
    return (
        isinstance(value, ir.Call)
        and value.method in ("cat", "concat", "vstack", "hstack")
        and bool(value.args)
        and isinstance(value.args[0], ir.Seq)
        and any(item.path == target.path for item in value.args[0].items)
    )


LOSSY = re.compile(r"(?i)(?:loss\w*|criterion|cross_entropy|criteri\w*|^ce|^bce|^mse|^crit|^nll)$")

_EMPTYING = frozenset("clear pop popleft popitem reset detach_ zero_ get_nowait".split())

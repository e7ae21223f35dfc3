"""What a function's text proves about its names before any value is followed: one walk, no flow."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import additive_terms, targets, unscaled
from gpulint.analysis.torch.backward import is_known_backward, runs_backward
from gpulint.analysis.torch.methods import GIVES_ITSELF
from gpulint.analysis.torch.names import REDUCTIONS

MODULE_METHODS = frozenset(
    (
        "parameters named_parameters train eval requires_grad_ modules named_modules children state_dict_ "
        "apply_"
    ).split()
)

# The names of what goes backward.
_SOUGHT = re.compile(
    r"(?i)loss|(?:^|[._])(?:l|err|error|cost|energy|elbo|objective|obj|nll|kl|total|mse|bce|ce)(?:$|[._\d])"
)

LOSSY = re.compile(r"(?i)(?:loss\w*|criterion|cross_entropy|criteri\w*|^ce|^bce|^mse|^crit|^nll)$")


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
        "_copies",
        "_fetched",
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
        self._fetched: dict[str, list[ir.Expr | None]] = {}
        self._copies: list[tuple[str, str]] = []
        self._scan(function.body)
        self.words |= _words_of_defaults(function)
        self._find_fetched(function)
        self._find_terms()
        self.modules |= {path for path, source in self._copies if source in self.modules}
        # What is loaded from a file and then called is a whole network.
        self.modules |= {
            name for name, made in self._made.items() if made == {"torch.load"} and name in self.called
        }

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

    def _find_fetched(self, function: ir.Function) -> None:
        """`loss = losses["loss"]; loss.backward()`: a backward on the entry, where the name is bound to nothing else."""
        for name, values in self._fetched.items():
            value = values[0]
            if name not in self.backward or len(values) > 1 or not isinstance(value, (ir.Sub, ir.Attr)):
                continue
            owner = value.base.path
            if value.path is not None and owner is not None and owner != _first_name(function):
                self.backward.add(value.path)
                self._field(value)
                if name in self.scalars:
                    self.scalars.add(value.path)

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
                if isinstance(target, ir.Name):
                    plain = isinstance(statement, ir.Assign) and target in statement.targets
                    value = statement.value if plain and isinstance(statement, ir.Assign) else None
                    self._fetched.setdefault(target.id, []).append(value)
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
                    if "out of memory" in expr.value.lower() or "OOM" in expr.value:
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
            func = unmoved(func)
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
            elif method == "load_state_dict" and call.args:
                self._copied(base, call.args[0])
        if runs_backward(method):
            self._backward(call)

    def _copied(self, path: str, weights: ir.Expr) -> None:
        """`target.load_state_dict(net.state_dict())`: what gets the state of a module is one."""
        source = weights.func if isinstance(weights, ir.Call) and weights.method == "state_dict" else None
        if isinstance(source, ir.Attr) and source.base.path is not None:
            self._copies.append((path, source.base.path))

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
                if not call.args and call.keyword("gradient") is None and not _is_reduced(func.base):
                    self.scalars.add(base.path)
        for arg in call.args[:1]:
            value = unscaled(arg)
            # `discriminator_backward(data, labels)` is given what its loss is made of.
            if value.path is not None and (is_known_backward(call.method) or _SOUGHT.search(value.path)):
                self.backward.add(value.path)
                if not _is_reduced(arg):
                    self.scalars.add(value.path)
                self._field(value)

    def _choose(self, entry: ir.Sub) -> None:
        if entry.base.path is not None and entry.index.path is not None:
            self.chosen.add((entry.base.path, entry.index.path))

    def _field(self, expr: ir.Expr) -> None:
        if isinstance(expr, (ir.Sub, ir.Attr)) and isinstance(expr.base, ir.Name):
            self.fields.setdefault(expr.base.id, Fields()).add(expr)


def _words_of_defaults(function: ir.Function) -> set[str]:
    """`no_grad` of `def embed(x, context=torch.no_grad())`: a default is as much the function's as its body."""
    return {
        part.attr if isinstance(part, ir.Attr) else part.id
        for param in function.params
        if param.default is not None and not isinstance(param.default, ir.Const)
        for part in ir.walk(param.default)
        if isinstance(part, (ir.Attr, ir.Name))
    }


def _first_name(function: ir.Function) -> str:
    return function.params[0].name if function.params else ""


def unmoved(func: ir.Attr) -> ir.Attr:
    """`model.eval` for the callee of `model.to(device).eval()`."""
    base = func.base
    while isinstance(base, ir.Call) and isinstance(base.func, ir.Attr) and base.method in GIVES_ITSELF:
        base = base.func.base
    return ir.Attr(func.origin, base, func.attr)


def _is_reduced(expr: ir.Expr) -> bool:
    """`(loss * weight).mean()`: what backward goes through is reduced first, so that its parts may be of any shape."""
    return any(isinstance(part, ir.Call) and part.method in REDUCTIONS for part in ir.walk(expr))

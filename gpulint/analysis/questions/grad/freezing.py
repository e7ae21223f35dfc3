"""Whether a network may have been frozen where a step cannot see it: in its own class, by its maker, by a helper, by
who hands it over. Then a forward on data builds no graph, whatever the grad mode around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.reading import unwrapped
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.questions.grad.frozen_networks import handed_frozen
from gpulint.analysis.questions.grad.own_guards import may_guard
from gpulint.analysis.torch import frameworks
from gpulint.analysis.values.values import Kind
from gpulint.answers import Verdict

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis

_FREEZES = frozenset(
    "requires_grad requires_grad_ set_requires_grad freeze freeze_parameters toggle_grad".split()
)
# What switches for whatever runs there.
_WHOLESALE = frozenset({"set_grad_enabled", "toggle_optimizer", "vmap"})
_PARTS = frozenset("parameters named_parameters modules named_modules children named_children".split())
_KNOWN = ("torch.", "torchvision.", "timm.", "transformers.", "copy.")


def may_be_frozen(file: FileAnalysis, forward: Forward) -> bool:
    """Whether anything in reach may have frozen the network of a forward."""
    if builds_no_graph(forward.module.network):
        return True
    path = forward.module.path.removesuffix(".forward").removesuffix(".module")
    own = forward.function.cls
    beside = own.methods.values() if own is not None and "." in path else (forward.function,)
    if any(_freezes(file, function, path) for function in beside):
        return True
    handed = handed_frozen(file, forward.function, path)
    return handed is not None and handed.verdict is Verdict.REFUTED


def switching_words(functions: Iterable[ir.Function], words: Set[str]) -> set[str]:
    """Those of some words for switching gradients that functions speak. To read `requires_grad`, as who picks the parameters
    that want one for an optimizer, or counts them, switches nothing."""
    found: set[str] = set()
    for function in functions:
        spoken = words & function.home.evidence[function].words
        if "requires_grad" in spoken and not _sets_requires_grad(function):
            spoken -= {"requires_grad"}
        found |= spoken
    return found


def _sets_requires_grad(function: ir.Function) -> bool:
    """Whether it is set, or a function of that name is called."""
    for statement in ir.statements(function.body):
        bound = targets(statement) if isinstance(statement, ir.Assign) else []
        if any(isinstance(target, ir.Attr) and target.attr == "requires_grad" for target in bound):
            return True
        if any(call.method == "requires_grad" for call in ir.own_calls(statement)):
            return True
    return False


class Switched:
    """Whose gradients the code about a function switches: it, and the methods beside it. `words`: those that speak of it."""

    def __init__(self, function: ir.Function, words: Set[str]) -> None:
        self._words = words
        self._function = function
        self._paths: set[str] = set()
        self._anything = False
        for method in function.cls.methods.values() if function.cls is not None else (function,):
            if spoken := switching_words((method,), words):
                self._anything |= bool(spoken & _WHOLESALE)
                self._learn(method)

    def concerns(self, path: str) -> bool:
        """Whether gradients of a network are switched, or of a part of it, or of what it is a part of."""
        own = f"{path.removesuffix('.forward')}."
        return self._anything or any(
            f"{other}.".startswith(own) or own.startswith(f"{other}.") for other in self._paths
        )

    def _learn(self, method: ir.Function) -> None:
        for statement in ir.statements(method.body):
            bound = targets(statement) if isinstance(statement, ir.Assign) else []
            for target in bound:
                if isinstance(target, ir.Attr) and target.attr == "requires_grad":
                    self._add(method, statement, target.base)
            for call in ir.own_calls(statement):
                if call.method in self._words:
                    for switched in _given_to_switch(method, call):
                        made = isinstance(unwrapped(switched), ir.Call)
                        for expr in bound if made and bound else (switched,):
                            self._add(method, statement, expr)

    def _add(self, method: ir.Function, at: ir.Stmt, expr: ir.Expr, depth: int = 3) -> None:
        """What is switched, by the path of the network: where it is one of several, all of them."""
        expr = unwrapped(expr)
        while isinstance(expr, ir.Sub):
            expr = expr.base
        if isinstance(expr, ir.Seq):
            for item in expr.items:
                self._add(method, at, item, depth)
        elif isinstance(expr, ir.Call) and expr.method in _PARTS and isinstance(expr.func, ir.Attr):
            self._add(method, at, expr.func.base, depth)
        elif expr.path is None or not depth:
            self._anything = True
        elif around := list(_iterated(method, at, expr.path)):
            for iterable in around:
                self._anything |= iterable.path is not None and not _is_param(method, iterable.path)
                self._add(method, at, iterable, depth - 1)
        elif _is_param(method, expr.path):
            # A function that switches for others: what it is given is learnt where it is called, if its name is known.
            self._anything |= method.name not in self._words and method is not self._function
            self._paths.add(expr.path)
        else:
            self._paths |= {expr.path, *_also_called(method, expr.path)}


def _is_param(method: ir.Function, path: str) -> bool:
    return any(param.name == path for param in method.params)


def _given_to_switch(method: ir.Function, call: ir.Call) -> Iterator[ir.Expr]:
    """`net` of `net.requires_grad_(False)`, `set_requires_grad(net, False)` and `self.freeze(net)`."""
    own = method.params[0].name if method.cls is not None and method.params else ""
    owner = call.func.base if isinstance(call.func, ir.Attr) else None
    given = [arg for arg in (*call.args, *(v for _, v in call.keywords)) if not isinstance(arg, ir.Const)]
    if owner is not None and (owner.path != own or not given):
        yield owner
    else:
        yield from given


def _iterated(method: ir.Function, at: ir.Stmt, name: str) -> Iterator[ir.Expr]:
    """What the loops around a statement and its comprehensions run through that bind a name."""
    for statement in ir.statements(method.body):
        if isinstance(statement, ir.For) and any(target.path == name for target in targets(statement)):
            if any(inner is at for inner in ir.statements(statement.body)):
                yield statement.iterable
    for part in ir.own_parts(at):
        for target, iterable, _ in part.clauses if isinstance(part, ir.Comp) else ():
            if any(inner.path == name for inner in ir.walk(target)):
                yield iterable


def _also_called(method: ir.Function, path: str) -> Iterator[str]:
    """The other paths of what a function has under one: `self.teacher` after `self.teacher = net`."""
    for statement in ir.statements(method.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            value, bound = unwrapped(statement.value).path, [target.path for target in targets(statement)]
            if value == path:
                yield from filter(None, bound)
            elif path in bound and value is not None:
                yield value


def thawed_by_context(file: FileAnalysis, forward: Forward) -> bool | None:
    """Whether a context around a forward switches gradients on for its network, `with Thawed(self.value):`, and off again
    at its end. None where the function has no such context: then this says nothing; where it has, all else is frozen."""
    path = forward.module.path.removesuffix(".forward")
    thaws: bool | None = None
    for statement in ir.statements(forward.function.body):
        for item, _ in statement.items if isinstance(statement, ir.With) else ():
            if isinstance(item, ir.Call) and _thaws_for_a_while(file, forward.function, item):
                inside = any(inner is forward.stmt for inner in ir.statements(statement.blocks()[0]))
                given = any(arg.path == path for arg in (*item.args, *(value for _, value in item.keywords)))
                thaws = bool(thaws) or (inside and given)
    return thaws


def _thaws_for_a_while(file: FileAnalysis, function: ir.Function, made: ir.Call) -> bool:
    """Whether entering what a call makes switches gradients on for what it was given, and leaving it off."""
    path = made.func.path or ""
    qualified = file.names.qualify(path)
    value = file.free_name(function, path) if "." not in path else file.imported_value(qualified or path)
    if value is None or value.kind is not Kind.CLASS:
        return False
    enter, leave = value.ref.method("__enter__"), value.ref.method("__exit__")
    return (
        enter is not None and leave is not None and _switched(enter) == {True} and _switched(leave) == {False}
    )


def _switched(method: ir.Function) -> set[bool]:
    """What a method sets `requires_grad` to."""
    found: set[bool] = set()
    for _, call in ir.calls(method.body):
        if call.method == "requires_grad_":
            mode = call.argument(0, "requires_grad")
            found.add(not (isinstance(mode, ir.Const) and mode.value is False))
    for statement in ir.statements(method.body):
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Const):
            if any(isinstance(t, ir.Attr) and t.attr == "requires_grad" for t in statement.targets):
                found.add(bool(statement.value.value))
    return found


def builds_no_graph(network: object, depth: int = 2) -> bool:
    """Whether a network's own class may freeze its parameters, or may switch grad off in its forward; whether it is a
    table, which saves nothing but the indices."""
    if not isinstance(network, ClassInfo):
        return network in ("Embedding", "EmbeddingBag")
    for info in network.ancestors():
        if any(_makes_frozen(method) for method in info.cls.methods.values()):
            return True
        inner = (value.ref for value in info.attrs.values() if value.kind is Kind.MODULE)
        if depth and any(ref is not network and builds_no_graph(ref, depth - 1) for ref in inner):
            return True
    return may_guard(network, "forward", 3)


def _makes_frozen(method: ir.Function) -> bool:
    """Whether a method switches gradients, or makes `Parameter(x, requires_grad=False)`."""
    return bool(switching_words((method,), _FREEZES)) or any(
        call.keyword("requires_grad") is not None for _, call in ir.calls(method.body)
    )


def _freezes(file: FileAnalysis, function: ir.Function, path: str) -> bool:
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and any(target.path == path for target in statement.targets):
            if any(_hides_freezing(file, function, call) for call in _makers(statement.value)):
                return True
        elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            call = statement.value
            given = [arg.path for arg in (*call.args, *(value for _, value in call.keywords))]
            alone = given.count(path) == 1 and not any(other for other in given if other != path)
            if alone and _hides_freezing(file, function, call):
                return True
    return False


def _makers(value: ir.Expr | None) -> Iterator[ir.Call]:
    """The call that makes a network: `build(x)` of `build(x).to(device).eval()`."""
    made = unwrapped(value) if value is not None else None
    if isinstance(made, ir.Call):
        yield made


def _hides_freezing(file: FileAnalysis, function: ir.Function, call: ir.Call) -> bool:
    """Whether a function that makes a network, or is given one, freezes it or cannot be seen."""
    name = call.func.path
    if name is None or call.method[:1].isupper():
        return False
    qualified = file.names.qualify(name)
    if qualified is not None and (qualified.startswith(_KNOWN) or frameworks.constructor(qualified)):
        return False
    if function.cls is not None and function.params and name.startswith(f"{function.params[0].name}."):
        method = function.cls.methods.get(call.method)
        return method is not None and bool(switching_words((method,), _FREEZES))
    found = file.free_name(function, name) if "." not in name else file.imported_value(qualified or name)
    if found is not None and found.kind is Kind.FUNCTION:
        return bool(switching_words((found.ref,), _FREEZES))
    return qualified is not None and (found is None or found.kind is Kind.QUALIFIED)

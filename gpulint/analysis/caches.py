"""Caches without a bound that keep what a network gave: memoised functions, dicts of the module or of a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis import ir
from gpulint.analysis.averages import recording
from gpulint.analysis.evidence import resets, targets
from gpulint.analysis.names import NO_GRAD
from gpulint.analysis.values import LARGE, MAYBE, MIXED, UNSURE_GRAD, Grad, Kind, Val, held_parts

if TYPE_CHECKING:
    from gpulint.analysis.facts import FunctionFacts
    from gpulint.analysis.program import FileAnalysis

_CACHES = frozenset({"functools.cache", "functools.lru_cache"})
_MAKERS = frozenset({"dict", "OrderedDict", "defaultdict"})


@dataclass(slots=True)
class Cache:
    """What is kept for each new key. `graph`: with its autograd graph. `value` is what the dict is given."""

    node: ir.Expr | ir.Stmt
    name: str
    what: str  # "function" or "dict"
    graph: bool
    value: ir.Expr | None = None


def caches(file: FileAnalysis, functions: list[FunctionFacts]) -> list[Cache]:
    """Unbounded caches of a network's outputs on the device."""
    found: list[Cache] = []
    for function in file.module.functions:
        if function.decorators:
            found += _memoised(file, function)
    known = {facts.function: facts for facts in functions}
    dicts = _dicts(file)
    for function in file.module.functions:
        facts = known.get(function)
        if dicts and function is not file.module.body and not (facts is not None and facts.is_test):
            found += _memo(file, facts, function, dicts)
    return found


# --- functools -----------------------------------------------------------------------------------------------------


def _memoised(file: FileAnalysis, function: ir.Function) -> Iterator[Cache]:
    if not any(param.name != "self" for param in function.params):
        return
    for decorator in function.decorators:
        call = decorator if isinstance(decorator, ir.Call) else None
        path = call.func.path if call is not None else decorator.path
        name = file.names.qualify(path) if path is not None else None
        if name not in _CACHES or (name.endswith("lru_cache") and not _is_unbounded(call)):
            continue
        summary = file.summary(function)
        value = summary.returns if summary is not None else None
        kept = _network_output(value) if value is not None else None
        if kept is not None:
            yield Cache(decorator, function.name, "function", kept.kind is Kind.GRAPH)


def _is_unbounded(call: ir.Call | None) -> bool:
    size = call.argument(0, "maxsize") if call is not None else None
    return isinstance(size, ir.Const) and size.value is None


def _network_output(value: Val) -> Val | None:
    """The first tensor of a returned value that a network gave, graph or none."""
    for part in held_parts(value):
        if part.has(MAYBE | MIXED | UNSURE_GRAD):
            continue
        if part.kind is Kind.GRAPH and any(site.what == "forward" for site in part.sites):
            return part
        if part.kind is Kind.DEVICE and part.has(LARGE):
            return part
    return None


# --- dicts ---------------------------------------------------------------------------------------------------------


def _dicts(file: FileAnalysis) -> frozenset[str]:
    """The dicts that live as long as the module or a class, and that nothing in the file empties."""
    found = set(_empty_dicts(file.module.body.body))
    for cls in file.module.classes.values():
        found |= {f"{cls.name}.{path}" for path in _empty_dicts(cls.body)}
    if not found:
        return frozenset()
    emptied: set[str] = set()
    for function in file.module.functions:
        if function is not file.module.body:
            emptied |= {path.rpartition(".")[2] for path in resets(function.body)}
    for statement in ir.statements(file.module.body.body):
        if isinstance(statement, (ir.For, ir.While)):
            emptied |= {path.rpartition(".")[2] for path in resets(statement.body)}
    return frozenset(path for path in found if path.rpartition(".")[2] not in emptied)


def _empty_dicts(block: list[ir.Stmt]) -> Iterator[str]:
    for statement in block:
        if not isinstance(statement, ir.Assign) or statement.value is None:
            continue
        value = statement.value
        made = isinstance(value, ir.DictDisplay) and not value.pairs
        made = made or (isinstance(value, ir.Call) and value.method in _MAKERS and not value.keywords)
        if made:
            yield from (target.id for target in targets(statement) if isinstance(target, ir.Name))


def _memo(
    file: FileAnalysis, facts: FunctionFacts | None, function: ir.Function, dicts: frozenset[str]
) -> Iterator[Cache]:
    """`if key not in CACHE: CACHE[key] = net(x)`."""
    evidence = file.evidence[function]
    for test in ir.statements(function.body):
        if not isinstance(test, ir.If):
            continue
        for path in _asked_for(test.test):
            name = _shared(file, function, path, dicts)
            if name is None or path in evidence.assigned:
                continue
            for statement in ir.statements([*test.body, *test.orelse]):
                kept = _kept(file, facts, function, statement, path)
                if kept is not None and not any(_measures(s, path) for s in ir.statements(function.body)):
                    yield Cache(statement, name, "dict", kept, statement.value)  # type: ignore[attr-defined]


def _asked_for(test: ir.Expr) -> Iterator[str]:
    for part in ir.walk(test):
        if isinstance(part, ir.Op) and part.op == "not in" and part.operands[1].path is not None:
            yield part.operands[1].path


def _shared(file: FileAnalysis, function: ir.Function, path: str, dicts: frozenset[str]) -> str | None:
    """The shared dict that a path denotes: a global, or a class's own through the class, `self` or `cls`."""
    root, _, rest = path.partition(".")
    if path in dicts and not any(param.name == root for param in function.params):
        return path
    owner = file.class_of(function)
    if rest and root in ("self", "cls") and owner is not None and f"{owner.cls.name}.{rest}" in dicts:
        stored = any(
            f"{root}.{rest}" in file.evidence[method].stored for method in owner.cls.methods.values()
        )
        return None if stored else f"{owner.cls.name}.{rest}"
    return None


def _measures(statement: ir.Stmt, path: str) -> bool:
    """`len(CACHE)`: the code looks at how much it keeps."""
    return any(
        isinstance(part, ir.Call) and part.method == "len" and part.args and part.args[0].path == path
        for root in statement.expressions()
        for part in ir.walk(root)
    )


def _kept(
    file: FileAnalysis, facts: FunctionFacts | None, function: ir.Function, statement: ir.Stmt, path: str
) -> bool | None:
    """Whether the statement stores a network's output under a key: True with its graph, False without, else None."""
    if not isinstance(statement, ir.Assign) or statement.value is None:
        return None
    if not any(
        isinstance(target, ir.Sub) and target.base.path == path and not isinstance(target.index, ir.Const)
        for target in targets(statement)
    ):
        return None
    for forward in facts.forwards if facts is not None else ():
        if forward.stmt is statement and forward.proven:
            return _left(statement.value, forward.call, forward.grad)
    for hold in facts.holds if facts is not None else ():
        if hold.stmt is statement and hold.how == "item":
            part = _network_output(hold.value)
            return None if part is None else part.kind is Kind.GRAPH
    return _unfollowed(file, function, statement)


def _unfollowed(file: FileAnalysis, function: ir.Function, statement: ir.Assign) -> bool | None:
    """The same for a forward that the flow does not tell: of a module known by its attribute, on a tensor moved to
    the device."""
    for part in ir.walk(statement.value) if statement.value is not None else ():
        if isinstance(part, ir.Call) and part.args and _is_forward(file, function, part):
            mode = file.grad_at_entry(function)
            if mode is Grad.ENABLED and not any(
                inner is statement for inner in recording(file, function, function.body, True)
            ):
                mode = Grad.DISABLED if _under_no_grad(file, function, statement) else Grad.UNKNOWN
            return _left(statement.value, part, mode) if statement.value is not None else None
    return None


def _under_no_grad(file: FileAnalysis, function: ir.Function, statement: ir.Stmt) -> bool:
    for block in ir.statements(function.body):
        if isinstance(block, ir.With) and any(inner is statement for inner in ir.statements(block.body)):
            for expr, _ in block.items:
                path = expr.func.path if isinstance(expr, ir.Call) else None
                if path is not None and file.names.qualify(path) in NO_GRAD:
                    return True
    return False


def _is_forward(file: FileAnalysis, function: ir.Function, call: ir.Call) -> bool:
    func = call.func
    if isinstance(func, ir.Name):
        return (
            file.free_name(function, func.id).kind is Kind.MODULE
            and func.id not in file.evidence[function].assigned
        )
    if not isinstance(func, ir.Attr) or func.base.path is None or func.attr in _NOT_FORWARDS:
        return False
    owner = file.class_of(function)
    if owner is not None and func.base.path == "self":
        return owner.attr(func.attr).kind is Kind.MODULE
    state = file.states.get(function)
    known = state.vars.get(func.base.path) if state is not None else None
    return known is not None and known.kind is Kind.MODULE and _takes_tensor(call)


def _takes_tensor(call: ir.Call) -> bool:
    """Whether an argument is moved to the device in the call: what is called is given a tensor."""
    return any(
        isinstance(part, ir.Call) and part.method in ("cuda", "to")
        for arg in call.args
        for part in ir.walk(arg)
    )


_NOT_FORWARDS = frozenset("load_state_dict to cuda cpu register_buffer generate apply".split())


def _left(value: ir.Expr, forward: ir.Call, mode: Grad) -> bool | None:
    """What is left of a forward's result after the methods called on it."""
    graph = mode is Grad.ENABLED
    while value is not forward:
        if isinstance(value, ir.Call) and isinstance(value.func, ir.Attr):
            if value.method == "detach":
                graph = False
            elif value.method == "cpu" or any(
                isinstance(arg, ir.Const) and arg.value == "cpu" for arg in value.args
            ):
                if not graph:
                    return None
            elif value.method not in (
                "clone",
                "contiguous",
                "float",
                "half",
                "squeeze",
                "unsqueeze",
                "view",
                "to",
            ):
                return None
            value = value.func.base
        elif isinstance(value, (ir.Sub, ir.Attr)):
            value = value.base
        else:
            return None
    return graph if mode is not Grad.UNKNOWN else None

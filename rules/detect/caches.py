"""Caches without a bound that keep what a network gave: memoised functions, dicts of the module or of a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.averages.recording import recording

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import resets, targets
from gpulint.analysis.torch.names import NO_GRAD
from gpulint.analysis.values.values import LARGE, MAYBE, MIXED, UNSURE_GRAD, Grad, Kind, Val, held_parts

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import FunctionFacts
    from gpulint.analysis.file.program import FileAnalysis

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
    unless: tuple[ir.Function, ...] = ()  # the function that fills it, where only other files call that


def caches(file: FileAnalysis) -> list[Cache]:
    """Unbounded caches of a network's outputs on the device."""
    functions = file.function_facts
    found: list[Cache] = []
    for function in file.module.functions:
        if function.decorators:
            found += _memoised(file, function)
    known = {facts.function: facts for facts in functions}
    dicts = _dicts(file)
    for function in file.module.functions:
        facts = known.get(function)
        owned = dicts or function.cls is not None
        if owned and function is not file.module.body and not (facts is not None and facts.role.is_test):
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
        if _is_empty_dict(statement.value):
            yield from (target.id for target in targets(statement) if isinstance(target, ir.Name))


def _is_empty_dict(value: ir.Expr) -> bool:
    if isinstance(value, ir.DictDisplay):
        return not value.pairs
    return isinstance(value, ir.Call) and value.method in _MAKERS and not value.keywords


def _memo(
    file: FileAnalysis, facts: FunctionFacts | None, function: ir.Function, dicts: frozenset[str]
) -> Iterator[Cache]:
    """`if key not in CACHE: CACHE[key] = net(x)`, and the forms that look first and store later."""
    evidence = file.evidence[function]
    done: set[int] = set()
    for path, block in _looked_up(function):
        shared = _shared(file, function, path, dicts)
        name = shared if shared is not None else _own(file, function, path)
        if name is None or path in evidence.assigned:
            continue
        for statement in ir.statements(block):
            kept = _kept(file, facts, function, statement, path)
            if kept is None or id(statement) in done or (shared is None and not kept):
                continue
            done.add(id(statement))
            if not any(_measures(s, path) for s in ir.statements(function.body)):
                unless = (function,) if kept and not file.callers.get(function) else ()
                yield Cache(statement, name, "dict", kept, statement.value, unless)  # type: ignore[attr-defined]


def _looked_up(function: ir.Function) -> Iterator[tuple[str, list[ir.Stmt]]]:
    """The dicts that are asked for a key, with the statements that run where they do not have it."""
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.If):
            for part in ir.walk(statement.test):
                path = (
                    part.operands[1].path if isinstance(part, ir.Op) and part.op in ("in", "not in") else None
                )
                if path is not None and part.op == "not in":  # type: ignore[attr-defined]
                    yield path, [*statement.body, *statement.orelse]
                elif path is not None and any(isinstance(inner, ir.Return) for inner in statement.body):
                    yield path, function.body
        elif isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call):
            call = statement.value
            if call.method == "get" and isinstance(call.func, ir.Attr) and call.func.base.path is not None:
                yield call.func.base.path, function.body


def _own(file: FileAnalysis, function: ir.Function, path: str) -> str | None:
    """An object's own dict, made empty by its constructor and never emptied: it lives as long as the object."""
    owner = file.class_of(function)
    if owner is None or not path.startswith("self.") or path.count(".") != 1:
        return None
    made = False
    for method in owner.cls.methods.values():
        if method.name == "__init__":
            made = path[5:] in {name[5:] for name in _empty_attributes(method)}
        elif path in resets(method.body):
            return None
    return path if made else None


def _empty_attributes(method: ir.Function) -> Iterator[str]:
    for statement in ir.statements(method.body):
        if (
            isinstance(statement, ir.Assign)
            and statement.value is not None
            and _is_empty_dict(statement.value)
        ):
            yield from (
                target.path for target in targets(statement) if isinstance(target, ir.Attr) and target.path
            )


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
        for part in ir.own_parts(statement)
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
        if forward.stmt is statement and forward.module.proven:
            return _left(statement.value, forward.call, forward.mode.grad)
    for hold in facts.holds if facts is not None else ():
        if hold.stmt is statement and hold.place.how == "item":
            part = _network_output(hold.value)
            return None if part is None else part.kind is Kind.GRAPH
    return _unfollowed(file, function, statement)


def _unfollowed(file: FileAnalysis, function: ir.Function, statement: ir.Assign) -> bool | None:
    """The same for a forward that the flow does not tell: of a module known by its attribute, on a tensor moved to
    the device."""
    for part in ir.walk(statement.value) if statement.value is not None else ():
        if isinstance(part, ir.Call) and (part.args or part.keywords) and _is_forward(file, function, part):
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

"""Averages of a layer's activations, as a normalization keeps them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.averages.graphs import keeps_graph
from gpulint.rules.detect.averages.recording import recording
from gpulint.rules.detect.averages.updates import Average, reduces, same, summands, updates

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import cuts, pairs, passes_graph_by, targets
from gpulint.analysis.values.values import MAYBE, MIXED, UNSURE_GRAD, Grad, Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo
    from gpulint.analysis.file.facts import Forward, FunctionFacts
    from gpulint.analysis.file.program import FileAnalysis


def of_statistics(
    file: FileAnalysis, functions: list[FunctionFacts], function: ir.Function
) -> Iterator[Average]:
    """Averages in a module's forward of what it is given, where this file is seen to give it a network's output."""
    info = file.class_of(function)
    found = [
        (update, target, value)
        for update in recording(file, function, function.body, True)
        for target, value in updates(update)
        if target.path is not None and target.path.startswith("self.") and not passes_graph_by(target)
    ]
    if info is None or not found:
        return
    graphs = {
        param.name for param in function.params[1:] if _is_given_graph(file, functions, info, param.name)
    }
    inner = _of_inner_layer(file, function, info)
    made = _made_by_layers(file, function)
    own = {id(update) for update, _, _ in found}
    renewed = frozenset(path for method in info.cls.methods.values() for path in _renewed(file, method, own))
    for update, target, value in found:
        graphs = graphs - made if target.path in renewed else graphs | made
        leaves = tuple(
            part
            for part in summands(value)
            if not same(part, target)
            and ((keeps_graph(part, graphs) and reduces(part)) or part.path in inner)
        )
        if leaves:
            yield Average(function, update, target, leaves, "statistics")


def _renewed(file: FileAnalysis, method: ir.Function, own: set[int]) -> Iterator[str]:
    """The attributes that a method cuts from their graph or starts afresh, the updates themselves aside."""
    yield from cuts(method.body)
    if method.name == "__init__":
        return
    if method.name != "forward":
        yield from file.resets_of(method)
        return
    for statement in ir.statements(method.body):
        if isinstance(statement, ir.Assign) and id(statement) not in own:
            yield from (target.path for target in targets(statement) if target.path is not None)


def _made_by_layers(file: FileAnalysis, function: ir.Function) -> set[str]:
    """The names that a forward binds once, to what layers of its own make of its input with grad enabled."""
    if function not in file.states:
        file.summary(function)
    state = file.states[function].vars
    bound = Counter(
        target.path for statement in ir.statements(function.body) for target in targets(statement)
    )
    return {
        name
        for name, times in bound.items()
        if times == 1 and name is not None and (known := state.get(name)) is not None
        if known.kind is Kind.GRAPH and not known.has(MAYBE | UNSURE_GRAD | MIXED)
        if any(site.what == "forward" and site.function is function for site in known.sites)
    }


def _of_inner_layer(file: FileAnalysis, function: ir.Function, info: ClassInfo) -> frozenset[str]:
    """The names that a layer binds to means of its input. A layer with parameters of its own stands inside a network,
    so that its input has a graph; a normalizer of data has none."""
    if not _has_parameters(file, info):
        return frozenset()
    given = frozenset(file.param_token(function, param.name) for param in function.params[1:])
    if function not in file.states:
        file.summary(function)  # a forward without a loop is not followed otherwise
    state = file.states[function].vars
    reduced: set[str] = set()
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target, value in pairs(statement):
                name = target.path
                known = state.get(name) if name is not None else None
                if known is None or known.kind not in (Kind.SYMBOL, Kind.UNKNOWN):
                    continue
                by_hand = _is_arithmetic(value) and _is_all_of(value, reduced)
                if known.tokens & given and (reduces(value) or _calls_own(file, value) or by_hand):
                    reduced.add(name)  # type: ignore[arg-type]
    return frozenset(reduced)


def _is_arithmetic(value: ir.Expr) -> bool:
    return isinstance(value, ir.Op) and value.op in ("+", "-", "*", "/", "**")


def _is_all_of(value: ir.Expr, names: set[str]) -> bool:
    """Whether every name in an expression is one of these, and there is one: `mean_of_squares - mean ** 2`."""
    paths = {part.path for part in ir.walk(value) if isinstance(part, ir.Name)}
    return bool(paths) and paths <= names


def _has_parameters(file: FileAnalysis, info: ClassInfo) -> bool:
    """Whether the constructor makes parameters or layers, or another module's constructor of this file makes it."""
    init = info.cls.methods.get("__init__")
    if init is not None and any(
        (qualified := file.names.qualify(call.func.path or "")) is not None
        and qualified.startswith("torch.nn.")
        and qualified.rsplit(".", 1)[-1][:1].isupper()
        for _, call in ir.calls(init.body)
    ):
        return True
    makers = (
        other.cls.methods.get("__init__")
        for other in file.classes.values()
        if other.is_module and other is not info
    )
    return any(
        call.func.path == info.cls.name
        for maker in makers
        if maker is not None
        for _, call in ir.calls(maker.body)
    )


def _calls_own(file: FileAnalysis, value: ir.Expr) -> bool:
    """Whether the value is what a function of this file gives, whose reductions were followed."""
    if not isinstance(value, ir.Call) or not isinstance(value.func, ir.Name):
        return False
    callee = file.free_name(file.module.body, value.func.id)
    return callee.kind is Kind.FUNCTION and any(
        reduces(root) for statement in ir.statements(callee.ref.body) for root in statement.expressions()
    )


def is_module_forward(file: FileAnalysis, function: ir.Function) -> bool:
    owner = file.class_of(function)
    return function.name == "forward" and owner is not None and owner.is_module


def _is_given_graph(file: FileAnalysis, functions: list[FunctionFacts], info: ClassInfo, name: str) -> bool:
    """Whether a call of this module in the file passes the output of a forward made with grad enabled."""
    forward = info.cls.methods["forward"]
    names = [param.name for param in forward.params][1:]
    for facts in functions:
        made = [item for item in facts.forwards if item.mode.grad is Grad.ENABLED and item.site is not None]
        if not made:
            continue
        for _, call in ir.calls(facts.function.body):
            if _calls(file, facts.function, call, info):
                argument = call.argument(names.index(name), name)
                if argument is not None and any(_is_output(argument, item) for item in made):
                    return True
    return False


def _calls(file: FileAnalysis, function: ir.Function, call: ir.Call, info: ClassInfo) -> bool:
    path = call.func.path
    if path is None:
        return False
    state = file.states.get(function)
    known = state.vars.get(path) if state is not None else None
    if known is None:
        known = file.free_name(function, path) if "." not in path else None
    if known is None and path.startswith("self.") and (owner := file.class_of(function)) is not None:
        known = owner.attr(path[5:])
    return known is not None and known.kind in (Kind.MODULE, Kind.INSTANCE) and known.ref is info


def _is_output(argument: ir.Expr, forward: Forward) -> bool:
    if argument is forward.call:
        return True
    stmt = forward.stmt
    return (
        isinstance(stmt, ir.Assign)
        and stmt.value is forward.call
        and argument.path is not None
        and any(target.path == argument.path for target in targets(stmt))
    )

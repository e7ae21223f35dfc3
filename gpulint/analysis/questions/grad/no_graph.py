"""Where a forward makes no graph after all, or one that is wanted, by signs that stand elsewhere than at its call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.weights.parameters import Weights, weights_of
from gpulint.analysis.questions.grad.results import Result
from gpulint.analysis.values.values import Kind, held_parts

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward, FunctionFacts
    from gpulint.analysis.file.program import FileAnalysis
_JOINING = frozenset("cat stack concat concatenate vstack hstack".split())
_FILLING = frozenset("append extend".split())
# What leaves a tensor one that requires grad, if it was one.
_KEEPING = frozenset(
    "cpu to float double half squeeze unsqueeze view reshape flatten transpose permute".split()
)


def gives_graph(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether something that a function returns has a graph for certain, unlike a policy's actions or an embedding to be
    compared: those are there to be made without grad."""
    summary = file.summaries.get(function)
    parts = held_parts(summary.returns) if summary is not None and summary.returns is not None else []
    return any(part.kind is Kind.GRAPH for part in parts)


def is_weightless(network: object) -> bool:
    """Whether a network's class has no parameters: what it is given has a graph, or nothing has."""
    return isinstance(network, ClassInfo) and weights_of(network) is Weights.NONE


def is_read_on_cpu(facts: FunctionFacts, forward: Forward) -> bool:
    """Whether another result of the same network, or a container of its results, becomes an array as it is: on a GPU that
    fails."""
    same = forward.module.path.removesuffix(".forward")
    others = (one for one in facts.forwards if one.module.path.removesuffix(".forward") == same)
    if any(Result(one).is_read_on_cpu for one in others if one is not forward):
        return True
    containers = _containers(forward.function, Result(forward).left_there, forward.call)
    return bool(containers) and elements_become_arrays(forward.function, containers)


def _containers(function: ir.Function, names: frozenset[str], made: ir.Call) -> set[str]:
    """The lists that collect what has one of the names, or is made of the call itself, moved nowhere."""
    found: set[str] = set()
    for _, call in ir.calls(function.body):
        owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
        if call.method in _FILLING and owner is not None and len(call.args) == 1:
            parts = list(ir.walk(call.args[0]))
            moved = any(
                isinstance(part, ir.Call) and part.method in ("cpu", "to", "tolist", "item") for part in parts
            )
            if not moved and any(
                part is made or (isinstance(part, ir.Name) and part.id in names) for part in parts
            ):
                found.add(owner)
    return found


def elements_become_arrays(function: ir.Function, containers: set[str]) -> bool:
    """`[p.detach().numpy() for p in preds]`: no element is ever brought to the CPU."""
    for statement in ir.statements(function.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Comp) and len(part.clauses) == 1:
                target, iterable, _ = part.clauses[0]
                if iterable.path in containers and isinstance(target, ir.Name):
                    if any(_is_array_of(element, target.id) for element in part.elements):
                        return True
    return False


def _is_array_of(expr: ir.Expr, name: str) -> bool:
    if not isinstance(expr, ir.Call) or expr.method != "numpy" or not isinstance(expr.func, ir.Attr):
        return False
    base: ir.Expr = expr.func.base
    while isinstance(base, ir.Call) and base.method == "detach" and isinstance(base.func, ir.Attr):
        base = base.func.base
    return base.path == name


def becomes_array_undetached(function: ir.Function, holder: str) -> bool:
    """`torch.cat(outputs).cpu().numpy()`: torch refuses that for what has a graph, so that there is none."""
    names = {holder}
    for statement in ir.statements(function.body):
        value = statement.value if isinstance(statement, ir.Assign) else None
        if value is not None and _joined(value) == holder:
            names |= {target.path for target in targets(statement) if target.path is not None}
    for _, call in ir.calls(function.body):
        if call.method == "numpy" and isinstance(call.func, ir.Attr) and not call.args:
            base = _kept(call.func.base)
            if _joined(base) == holder or (base.path in names and base.path != holder):
                return not _is_detached(function, names)
    return False


def callers_want_none(file: FileAnalysis, forward: Forward) -> bool:
    """`self.features(x).numpy()`: a caller makes an array of what the function returns, which torch refuses with a graph."""
    name = forward.function.name
    if not forward.result.returned:
        return False
    for function, evidence in file.evidence.items():
        if {"numpy", name} <= evidence.called:
            for _, call in ir.calls(function.body):
                if call.method == "numpy" and isinstance(call.func, ir.Attr):
                    base = _kept(call.func.base)
                    if isinstance(base, ir.Call) and base.method == name:
                        return True
    return False


def _joined(expr: ir.Expr) -> str | None:
    """The list that a `torch.cat` and the like makes one tensor of."""
    expr = _kept(expr)
    return expr.args[0].path if isinstance(expr, ir.Call) and expr.method in _JOINING and expr.args else None


def _kept(expr: ir.Expr) -> ir.Expr:
    while isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.method in _KEEPING:
        expr = expr.func.base
    return expr


def _is_detached(function: ir.Function, names: set[str]) -> bool:
    """Whether one of the names is bound to something without its graph on the way."""
    return any(
        isinstance(part, ir.Call) and part.method == "detach"
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and statement.value is not None
        if any(target.path in names for target in targets(statement))
        for part in ir.walk(statement.value)
    )

"""Averages of values that the interpreter has followed: baselines, running losses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.averages.recording import recording
from gpulint.rules.detect.averages.updates import Average, is_average, reduces, same, summands

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import is_accumulation, passes_graph_by, targets
from gpulint.analysis.values.values import MAYBE, MIXED, UNSURE_GRAD, Grad, Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import FunctionFacts, Hold
    from gpulint.analysis.file.program import FileAnalysis


def of_values(file: FileAnalysis, facts: FunctionFacts) -> Iterator[Average]:
    """Averages of what is known to have a graph, or of what the function itself detaches where it uses it."""
    words = file.evidence[facts.function].words
    for hold in facts.holds:
        stmt = hold.stmt
        if (
            hold.place.how != "add"
            or hold.graph.grad is not Grad.ENABLED
            or hold.graph.consumed
            or hold.graph.fed_back
            or hold.rounds.bounded
        ):
            continue
        if (
            not isinstance(stmt, ir.Assign)
            or stmt.value is None
            or not is_average(stmt.targets[0], stmt.value)
            or passes_graph_by(stmt.targets[0])
        ):
            continue
        value = hold.value
        if value.kind is not Kind.GRAPH or value.has(MAYBE | UNSURE_GRAD | MIXED):
            continue
        if not _outlives_step(hold):
            continue
        leaves = tuple(leaf for leaf in hold.leaves if not isinstance(leaf, ir.Const))
        yield Average(facts.function, stmt, stmt.targets[0], leaves, "value", hold)
    if facts.has_backward and "detach" in words:
        yield from _detached_at_use(file, facts)


def _outlives_step(hold: Hold) -> bool:
    if hold.rounds.loops:
        return any(loop.steps or loop.backwards for loop in hold.rounds.loops)
    return (
        hold.place.holder_kind == "attribute"
        and hold.place.never_reset
        and any(reduces(leaf) for leaf in hold.leaves)
    )


def _detached_at_use(file: FileAnalysis, facts: FunctionFacts) -> Iterator[Average]:
    """`baseline = a * baseline + b * value` in a loop that uses `baseline.detach()`: the author knows of its graph."""
    function = facts.function
    if facts.grad_at_entry is not Grad.ENABLED:
        return
    for loop in (s for s in ir.statements(function.body) if isinstance(s, (ir.For, ir.While))):
        used = {
            call.func.base.path
            for _, call in ir.calls(loop.body)
            if call.method == "detach" and isinstance(call.func, ir.Attr)
        }
        for update in recording(file, function, loop.body, True):
            if not isinstance(update, ir.Assign) or update.value is None:
                continue
            target = update.targets[0]
            if (
                not isinstance(target, ir.Name)
                or target.id not in used
                or not is_accumulation(target, update.value)
                or _is_bound_before(loop.body, update, target.id)
            ):
                continue
            leaves = _others(update.value, target, loop) if is_average(target, update.value) else ()
            if leaves:
                yield Average(function, update, target, leaves, "value")


def _is_bound_before(block: list[ir.Stmt], update: ir.Stmt, name: str) -> bool:
    """Whether every way to the update within the round binds the name to something else first."""
    for statement in block:
        if statement is update:
            return False
        if any(target.path == name for target in targets(statement)) and isinstance(statement, ir.Assign):
            return True
        for inner in statement.blocks():
            if any(one is update for one in ir.statements(inner)):
                return _is_bound_before(inner, update, name)
    return False


def _others(value: ir.Expr, target: ir.Expr, loop: ir.For | ir.While) -> tuple[ir.Expr, ...]:
    """What is averaged in, where it is a name that the loop binds to a call's result, not detached on its way."""
    bound: dict[str, ir.Expr] = {}
    for statement in ir.statements(loop.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for name in targets(statement):
                if isinstance(name, ir.Name):
                    bound[name.id] = statement.value
    return tuple(
        part
        for part in summands(value)
        if isinstance(part, ir.Name)
        and not same(part, target)
        and part.id in bound
        and isinstance(bound[part.id], ir.Call)
        and not any(isinstance(p, ir.Call) and p.method in _CUTTING for p in ir.walk(bound[part.id]))
    )


_CUTTING = frozenset("detach item tolist numpy float int len".split())

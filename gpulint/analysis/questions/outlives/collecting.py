"""Piles by what they are for: the features of a metric that is driven from outside, and those that nobody reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.torch import frameworks
from gpulint.analysis.values.values import OUTPUT

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import FunctionFacts, Hold
    from gpulint.analysis.file.program import FileAnalysis


def is_metric(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether a method takes in each batch for another one of its class that makes a number of all of them. A state that
    a library keeps for the class, `add_state`, is gathered over the processes where it is."""
    info = file.class_of(function)
    ends = frameworks.METRIC_HALVES.get(function.name, frozenset())
    if info is None or not any(info.method(name) is not None for name in ends):
        return False
    return not any("add_state" in file.evidence[method].called for method in info.cls.methods.values())


def only_takes_in(hold: Hold) -> bool:
    """Whether a local list is filled, and spoken of nowhere else: neither in its function nor in one within."""
    place, body = hold.place, hold.function.body
    if place.holder_kind != "variable" or not place.holder.isidentifier() or hold.value.has(OUTPUT):
        return False
    if place.how not in ("append", "insert", "extend"):
        return False
    if place.read or hold.graph.returned or hold.graph.escaped or hold.function.name == "<module>":
        return False
    filled = {
        id(call.func.base)
        for statement in ir.statements(body)
        if isinstance(statement, ir.ExprStmt) and isinstance(call := statement.value, ir.Call)
        if isinstance(call.func, ir.Attr) and call.method in ("append", "insert", "extend")
    }
    bound = {id(target) for statement in ir.statements(body) for target in _bound_by(statement)}
    inner = [
        one
        for one in hold.function.home.module.functions
        if one is not hold.function and one.is_within(hold.function)
    ]
    return not any(place.holder in hold.function.home.evidence[one].words for one in inner) and all(
        id(part) in filled | bound
        for statement in ir.statements(body)
        for part in ir.own_parts(statement)
        if isinstance(part, ir.Name) and part.id == place.holder
    )


def _bound_by(statement: ir.Stmt) -> list[ir.Expr]:
    return targets(statement) if isinstance(statement, ir.Assign) else []


def is_unread(facts: FunctionFacts, hold: Hold) -> bool:
    """Whether a local container only takes in what a network of the project makes, which is a tensor for certain."""
    function, pile = hold.function, hold.place.pile
    if (
        hold.place.holder_kind != "variable"
        or hold.place.read
        or hold.place.how in ("join", "cat")
        or hold.graph.returned
        or hold.graph.escaped
    ):
        return False
    if pile is None or pile.host or pile.small or pile.few or pile.elsewhere or function.name == "<module>":
        return False
    if hold.value.has(OUTPUT) or len(hold.leaves) != 1:
        return False
    leaf = hold.leaves[0]
    for forward in facts.forwards:
        if forward.module.network is None or isinstance(forward.module.network, str):
            continue
        bound = isinstance(forward.stmt, ir.Assign) and leaf.path is not None
        if leaf is forward.call or (bound and any(leaf.path == part.path for part in targets(forward.stmt))):
            return True
    return False

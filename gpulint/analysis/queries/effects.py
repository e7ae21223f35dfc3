"""What was done last to a network before a place, under whatever name: moved, put into eval mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.consumers import Use, consumers, consumers_of_definition
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.models.table import Row
from gpulint.analysis.syntax.flow import are_exclusive
from gpulint.analysis.syntax.nodes import key_of


@dataclass(frozen=True, slots=True)
class Effect:
    """A call of a network's own method, by its row of the table."""

    call: ast.Call
    frame: Frame
    row: Row


@dataclass(frozen=True, slots=True)
class Place:
    """A network as it is at a node: by its key, where it has one, and its value."""

    key: str
    value: Value
    at: Any
    frame: Frame


def place_of(evaluator: Evaluator, node: Any, frame: Frame) -> Place:
    """The network that an expression gives, where it is evaluated."""
    return Place(key_of(node) or "", evaluator.value_of(node, frame), node, frame)


def effects_before(evaluator: Evaluator, place: Place, does: frozenset[str]) -> Iterator[Effect]:
    """Such effects in the place's own function, the last first."""
    flow = place.frame.flow
    names = [(name, row) for name, row in evaluator.table.knows("module").items() if row.does in does]
    found = [
        Effect(call, place.frame, row)
        for name, row in names
        for call in flow.calls.get(name, ())
        if isinstance(call.func, ast.Attribute) and _is_before(call, place)
    ]
    found.sort(key=lambda one: flow.order[flow.statement_of(one.call)], reverse=True)
    for one in found:
        if _is_of(evaluator, one.call.func.value, place) and not evaluator.is_dead(one.call, place.frame):  # type: ignore[attr-defined]
            yield one


def _is_before(call: ast.Call, place: Place) -> bool:
    """Whether a call has run when the place is reached: in a statement before it, in no other arm of an `if`, or within the expression
    itself. What is bound to a new name says it under that."""
    flow = place.frame.flow
    statement, own = flow.statement_of(call), flow.statement_of(place.at)
    if statement is own:
        return any(one is call for one in ast.walk(place.at))
    if flow.order[statement] > flow.order.get(own, 0):
        return False
    base: Any = call.func
    renamed = isinstance(statement, ast.Assign) and statement.value is call
    if renamed and key_of(statement.targets[0]) not in (key_of(base.value), place.key):
        return False
    return not are_exclusive(list(flow.around(statement)), list(flow.around(place.at)))


def _is_of(evaluator: Evaluator, base: Any, place: Place) -> bool:
    """Whether what is done to one network is done to another, which it is or is a part of."""
    own, key = key_of(base), place.key
    if own is not None and (key == own or key.startswith((f"{own}.", f"{own}["))):
        return True
    value = evaluator.value_of(base, place.frame)
    return value.kind == "module" and bool(value.origins & place.value.origins)


def since_made(evaluator: Evaluator, origin: Any, does: frozenset[str]) -> list[Use]:
    """What is done to a network anywhere since it was made, or since a function was given it."""
    return [one for one in uses_since_made(evaluator, origin) if one.row is not None and one.row.does in does]


def uses_since_made(evaluator: Evaluator, origin: Any) -> list[Use]:
    """All that becomes of a thing since it was made, or since a function was given it."""
    node, where = origin
    if where is None or not isinstance(node, ast.AST):
        return []
    key = ("uses", node)
    if key not in where.memo:
        where.memo[key] = _uses_since_made(evaluator, node, where)
    return where.memo[key]  # type: ignore[no-any-return]


def _uses_since_made(evaluator: Evaluator, node: Any, where: Frame) -> list[Use]:
    if not isinstance(node, ast.arg):
        return consumers(evaluator, node, where, "object")
    return [
        use
        for one in where.flow.definitions.get(node.arg, ())
        if one.node is node
        for use in consumers_of_definition(evaluator, one, where, "object")
    ]

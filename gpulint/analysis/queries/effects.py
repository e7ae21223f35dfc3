"""What was done last to a network before a place, under whatever name; what is done to it anywhere."""

from __future__ import annotations

import ast
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


def effect_before(evaluator: Evaluator, place: Place, does: frozenset[str]) -> Effect | None:
    """The last of such effects in the place's own function."""
    flow = place.frame.flow
    own_statement = flow.statement_of(place.at)
    at = flow.order.get(own_statement, 0)
    blocks = list(flow.around(place.at))
    best: tuple[int, Effect] | None = None
    for name, row in evaluator.table.knows("module").items():
        if row.does not in does:
            continue
        for call in flow.calls.get(name, ()):
            statement = flow.statement_of(call)
            order = flow.order.get(statement, 0)
            if order > at or not isinstance(call.func, ast.Attribute):
                continue
            if (order == at and not any(one is call for one in ast.walk(place.at))) or (
                best is not None and order < best[0]
            ):
                continue
            renamed = isinstance(statement, ast.Assign) and statement.value is call
            if renamed and key_of(statement.targets[0]) != key_of(call.func.value):
                continue  # the value says it, under the new name
            if are_exclusive(list(flow.around(statement)), blocks) or evaluator.is_dead(call, place.frame):
                continue
            if _is_of(evaluator, call.func.value, place):
                best = (order, Effect(call, place.frame, row))
    return best[1] if best is not None else None


def _is_of(evaluator: Evaluator, base: Any, place: Place) -> bool:
    """Whether what is done to one network is done to another, which it is or is a part of."""
    own, key = key_of(base), place.key
    if own is not None and (key == own or key.startswith((f"{own}.", f"{own}["))):
        return True
    value = evaluator.value_of(base, place.frame)
    return value.kind == "module" and bool(value.origins & place.value.origins)


def since_made(evaluator: Evaluator, origin: Any, does: frozenset[str]) -> list[Use]:
    """What is done to a network anywhere since it was made, or since a function was given it."""
    node, where = origin
    if where is None or not isinstance(node, ast.AST):
        return []
    if isinstance(node, ast.arg):
        uses = [
            use
            for one in where.flow.definitions.get(node.arg, ())
            if one.node is node
            for use in consumers_of_definition(evaluator, one, where, "object")
        ]
    else:
        uses = consumers(evaluator, node, where, "object")
    return [one for one in uses if one.row is not None and one.row.does in does]

"""What was done last to a network before a place, under whatever name: moved, put into eval mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import Value, in_text_order
from gpulint.analysis.evaluate.consumers import PARAMETERS, Use, consumers, consumers_of_definition
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, outwards, remembered, settled
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.syntax.flow import Flow, are_exclusive
from gpulint.analysis.syntax.nodes import called_on, key_of

_OF_GRADIENTS: Final = re.compile(r"clip_grad|^(?:parameters\.)?grad$")  # names of uses
_MOST_WAYS: Final = 60  # functions and calls that lead to one place


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


def effects_before(evaluator: Evaluator, place: Place, does: frozenset[str]) -> Iterator[Use]:
    """Calls of a network's own methods with such effects in the place's own function, the last first."""
    flow = place.frame.flow
    rows = evaluator.table.knows("module")
    wanted = [name for name in flow.calls if name in rows and rows[name].does in does]
    calls = [(call, rows[name]) for name in wanted for call in flow.calls[name] if called_on(call)]
    found = [one for one in calls if _is_before(one[0], place)]
    found.sort(key=lambda one: flow.order[flow.statement_of(one[0])], reverse=True)
    for call, row in found:
        if _is_of(evaluator, called_on(call), place) and not evaluator.is_dead(call, place.frame):
            yield Use("method", call, place.frame, row=row)


def _is_before(call: ast.Call, place: Place) -> bool:
    """Whether a call has run when the place is reached: in a statement before it, in no other arm of an `if`, or within the expression
    itself. A network is changed in place, whatever the result is bound to."""
    flow = place.frame.flow
    statement, own = flow.statement_of(call), flow.statement_of(place.at)
    if statement is own:
        return any(one is call for one in ast.walk(place.at))
    if flow.order[statement] > flow.order.get(own, 0):
        return False
    return not are_exclusive(list(flow.around(statement)), list(flow.around(place.at)))


def _is_of(evaluator: Evaluator, base: Any, place: Place) -> bool:
    """Whether what is done to one network is done to another, which it is or is a part of."""
    own, key = key_of(base), place.key
    if own is not None and (key == own or key.startswith((f"{own}.", f"{own}["))):
        return True
    value = evaluator.value_of(base, place.frame)
    return value.kind in ("module", "unknown") and bool(value.origins & place.value.origins)


def origins_of(evaluator: Evaluator, value: Value) -> frozenset[Any]:
    """Where a network was made; of one of which only the class is known, where any of the class are, or of those that derive from it."""
    if value.origins or not isinstance(value.ref, Class):
        return value.origins
    several = (value.ref, *evaluator.program.subclasses(value.ref))
    return frozenset(one for cls in several for one in evaluator.made(cls))


def share(some: Iterable[Any], others: Iterable[Any]) -> bool:
    """Whether something of some is made where one of others is, by one call of its function, or one of them by whichever."""
    return any(one is other and _may_be_one(where, at) for one, where in some for other, at in others)


def _may_be_one(frame: Frame | None, other: Frame | None) -> bool:
    """Whether frames of a function are of the same calls, as far out as both say of which they are."""
    while frame is not other and frame is not None and other is not None:
        if frame.caller is not None and other.caller is not None and frame.call is not other.call:
            return False
        frame, other = frame.caller, other.caller
    return True


def since_made(
    evaluator: Evaluator, origin: Any, does: frozenset[str], before: Place | None = None
) -> list[Use]:
    """What is done to a network since it was made, or since a function was given it: anywhere, or before a place."""
    uses = [one for one in uses_since_made(evaluator, origin) if one.does in does]
    return [one for one in uses if before is None or may_be_before(evaluator, one, before)]


def may_be_before(evaluator: Evaluator, use: Use, place: Place) -> bool:
    """Whether something may have been done by the time a place is reached: what the nearest function that leads to both says, and
    where none is seen it may."""
    earlier = _ways(evaluator, use.node, use.frame)
    for function, nodes in _ways(evaluator, place.at, place.frame).items():
        if function in earlier:
            flow = function.flow
            return any(_precedes(flow, one, other) for one in earlier[function] for other in nodes)
    return True


def _ways(evaluator: Evaluator, node: Any, frame: Frame) -> dict[Function, list[Any]]:
    """The functions that lead to a node, the nearest first, each with the places in it that do."""
    return remembered(frame.memo, ("ways", node), {}, lambda: _ways_to(evaluator, node, frame))  # type: ignore[no-any-return]


def _ways_to(evaluator: Evaluator, node: Any, frame: Frame) -> dict[Function, list[Any]]:
    found: dict[Function, list[Any]] = {}
    queue = [(node, frame)]
    for at, inside in queue:
        if inside.function not in found and len(queue) < _MOST_WAYS:
            queue += outwards(evaluator, inside)
        found.setdefault(inside.function, []).append(at)
    return found


def _precedes(flow: Flow, one: Any, other: Any) -> bool:
    """Whether of two nodes of a function the first runs before the second, in the same round of a loop or in an earlier one."""
    if not set(flow.loops(one)).isdisjoint(flow.loops(other)):
        return True
    if are_exclusive(list(flow.around(one)), list(flow.around(other))):
        return False
    return position(flow, one) <= position(flow, other)


def position(flow: Flow, node: Any) -> tuple[int, int, int]:
    """Where a node ends, in the order in which a function runs: what a call is given is done before it."""
    return flow.order.get(flow.statement_of(node), 0), node.end_lineno, node.end_col_offset


def uses_since_made(evaluator: Evaluator, origin: Any) -> list[Use]:
    """All that becomes of a thing since it was made, or since a function was given it."""
    node, where = origin
    if where is None or not isinstance(node, ast.AST):
        return []
    uses = lambda: [one for one in _uses_since_made(evaluator, node, where) if one.role != "bound"]  # noqa: E731
    return settled(evaluator, where, ("uses", node), uses)  # type: ignore[no-any-return]


def gradients_are_read(evaluator: Evaluator, network: Value) -> bool:
    """Whether a program reads the gradients of a network's weights, as who clips them does."""
    origins = in_text_order(origins_of(evaluator, network))
    uses = (use for one in origins for use in uses_since_made(evaluator, one))
    return any(use.path[:1] == (PARAMETERS,) and _OF_GRADIENTS.search(use.name) for use in uses)


def _uses_since_made(evaluator: Evaluator, node: Any, where: Frame) -> list[Use]:
    if isinstance(node, ast.arg):
        return _uses_of_parameter(evaluator, node.arg, where)
    made = evaluator.value_of(node, where)
    own = evaluator.constructed(made, made.ref) if isinstance(made.ref, Class) else None
    by_itself = _uses_of_parameter(evaluator, own.function.self_name, own) if own is not None else []
    return [*by_itself, *consumers(evaluator, node, where, "object")]


def _uses_of_parameter(evaluator: Evaluator, name: str, frame: Frame) -> list[Use]:
    given = [one for one in frame.flow.definitions.get(name, ()) if one.kind == "parameter"]
    return [use for one in given for use in consumers_of_definition(evaluator, one, frame, "object")]

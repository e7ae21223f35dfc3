"""What was done last to a network before a place: moved, put into eval mode, under whatever name, here or by those who call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import UNKNOWN, Value
from gpulint.analysis.evaluate.consumers import Use, consumers, consumers_of_definition
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, given_for
from gpulint.analysis.models.table import Row
from gpulint.analysis.syntax.nodes import key_of

DEEPEST: Final = 3  # calls that are followed outwards


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
            if is_exclusive(flow.blocks[statement], blocks) or evaluator.is_dead(call, place.frame):
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


def is_exclusive(block: Any, around: list[Any]) -> bool:
    """Whether a block is another arm of an `if` that the place stands in."""
    owners = {one.owner: one for one in around}
    while block is not None:
        other = owners.get(block.owner)
        if other is not None and isinstance(block.owner, ast.If) and other.arm != block.arm:
            return True
        block = block.parent
    return False


def effects_before(
    evaluator: Evaluator, place: Place, does: frozenset[str], depth: int = DEEPEST
) -> Iterator[Effect | None]:
    """The same on each way to the place: its function's own last effect, or where that has none what those who call it did before; None
    where a way shows none."""
    own = effect_before(evaluator, place, does)
    if own is not None or not depth:
        yield own
        return
    found = False
    for outer in outwards(evaluator, place):
        found = True
        yield from effects_before(evaluator, outer, does, depth - 1)
    if not found:
        yield None


def outwards(evaluator: Evaluator, place: Place) -> Iterator[Place]:
    """The same network as those who call the function have it: an argument, or what an object has whose method is called."""
    frame, function = place.frame, place.frame.function
    first, _, rest = place.key.partition(".")
    sites = (
        [(frame.call, frame.caller)]
        if frame.caller is not None
        else [(one.call, one.frame) for one in evaluator.callers(function)]
    )
    for call, caller in sites:
        if caller is None or not isinstance(call, ast.Call):
            continue
        if function.takes_self and first == function.self_name:
            base = key_of(call.func.value) if isinstance(call.func, ast.Attribute) else None
            if base is not None:
                yield Place(f"{base}.{rest}" if rest else base, place.value, call, caller)
            continue
        given = given_for(function, first, call)
        if given is not None:
            key = key_of(given)
            value = evaluator.value_of(given, caller) if not rest else UNKNOWN
            yield Place(f"{key}.{rest}" if key and rest else key or "", value, call, caller)


def since_made(evaluator: Evaluator, origin: Any, does: frozenset[str]) -> list[Use]:
    """What is done to a network anywhere since it was made, or since a function was given it."""
    return [one for one in uses_since_made(evaluator, origin) if one.row is not None and one.row.does in does]


def uses_since_made(evaluator: Evaluator, origin: Any) -> list[Use]:
    """All that becomes of a thing since it was made, or since a function was given it."""
    node, where = origin
    if where is None or not isinstance(node, ast.AST):
        return []
    if not isinstance(node, ast.arg):
        return consumers(evaluator, node, where, "object")
    return [
        use
        for one in where.flow.definitions.get(node.arg, ())
        if one.node is node
        for use in consumers_of_definition(evaluator, one, where, "object")
    ]

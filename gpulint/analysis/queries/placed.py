"""Where a network is at one place of a function: the last that was done to it before, under whatever name; else where it was made."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpulint.analysis.domain.values import Device, Value
from gpulint.analysis.evaluate.consumers import consumers, consumers_of_definition
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.syntax.nodes import key_of

_MOVES: Final = ("cuda", "to", "cpu")
How = Literal["moved", "made", "given"]


@dataclass(frozen=True, slots=True)
class Placed:
    """The device, with what says so. `given`: a caller gives the network, and nothing shows where it is by then."""

    device: Device
    how: How
    at: Any = None


def placed(evaluator: Evaluator, node: Any, frame: Frame) -> Placed:
    """Where the network that an expression gives is, when the expression is evaluated."""
    value = evaluator.value_of(node, frame)
    here = _moved_before(evaluator, node, value, frame)
    if here is not None:
        return here
    if value.device != "?":
        return Placed(value.device, "moved")
    found: Placed | None = None
    for origin in value.origins:
        one = _since_made(evaluator, origin, frame)
        if found is None or one.device == "cuda":
            found = one
    return found or Placed("?", "given")


def _moved_before(evaluator: Evaluator, node: Any, value: Value, frame: Frame) -> Placed | None:
    flow = frame.flow
    statement = flow.statement_of(node)
    at = flow.order.get(statement, 0)
    blocks = list(flow.around(node))
    key = key_of(node)
    best: tuple[int, Placed] | None = None
    for name in _MOVES:
        for call in flow.calls.get(name, ()):
            own = flow.statement_of(call)
            order = flow.order.get(own, 0)
            if (
                order >= at
                or not isinstance(call.func, ast.Attribute)
                or (best is not None and order < best[0])
            ):
                continue
            if (
                isinstance(own, ast.Assign)
                and own.value is call
                and key_of(own.targets[0]) != key_of(call.func.value)
            ):
                continue  # the value says it, under the new name
            moved = evaluator.value_of(call.func.value, frame)
            same = (key is not None and key_of(call.func.value) == key) or bool(moved.origins & value.origins)
            if not same or moved.kind != "module" or _is_exclusive(flow.blocks[own], blocks):
                continue
            where: Device | None = {"cuda": "cuda", "cpu": "host"}.get(name) or evaluator.calling.device(
                call, frame
            )  # type: ignore[assignment]
            if where is not None:
                best = (order, Placed(where, "moved", call))
    return best[1] if best is not None else None


def _is_exclusive(block: Any, around: list[Any]) -> bool:
    """Whether a block is another arm of an `if` that the place stands in."""
    owners = {one.owner: one for one in around}
    while block is not None:
        other = owners.get(block.owner)
        if other is not None and isinstance(block.owner, ast.If) and other.arm != block.arm:
            return True
        block = block.parent
    return False


def _since_made(evaluator: Evaluator, origin: Any, frame: Frame) -> Placed:
    """What is done to a network anywhere since it was made, or since a function was given it."""
    node, where = origin
    if where is None:
        return Placed("?", "given")
    if isinstance(node, ast.arg):
        uses = [
            use
            for one in where.flow.definitions.get(node.arg, ())
            if one.node is node
            for use in consumers_of_definition(evaluator, one, where, "object")
        ]
    elif isinstance(node, ast.AST):
        uses = consumers(evaluator, node, where, "object")
    else:
        return Placed("?", "given")
    moves = [
        one
        for one in uses
        if one.row is not None and one.row.does == "moves" and one.frame.function is not frame.function
    ]
    if moves and frame.function.name == "__init__" and moves[0].frame.function.cls is frame.function.cls:
        return Placed("host", "made", moves[0].node)  # moved only after the constructor
    moves.sort(key=lambda one: one.frame.flow.order.get(one.frame.flow.statement_of(one.node), 0))
    for use in reversed(moves):
        where = use.frame.flow
        if len(moves) > 1 and isinstance(where.blocks[where.statement_of(use.node)].owner, ast.If):
            continue  # in some cases only
        device = use.row.device if use.row is not None else "?"
        if device == "argument":
            device = evaluator.calling.device(use.node, use.frame) or "?"
        return Placed(device, "moved", use.node)  # type: ignore[arg-type]
    if isinstance(node, ast.Call):
        return Placed("host", "made", node)
    return Placed("?", "given")

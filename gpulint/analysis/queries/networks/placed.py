"""Where a network is at one place of a function: the last that was done to it before, under whatever name; else where it was made."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpulint.analysis.domain.values import Device, in_text_order
from gpulint.analysis.evaluate.consumers import Use
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, remembered
from gpulint.analysis.queries.effects import effects_before, origins_of, place_of, since_made
from gpulint.analysis.syntax.nodes import keyword

_MOVES: Final = frozenset({"moves"})
How = Literal["moved", "made", "given"]


@dataclass(frozen=True, slots=True)
class Placed:
    """The device, with what says so. `given`: a caller gives the network, and nothing shows where it is by then."""

    device: Device
    how: How
    at: Any = None


_GIVEN: Final = Placed("?", "given")


def placed(evaluator: Evaluator, node: Any, frame: Frame) -> Placed:
    """Where the network that an expression gives is, when the expression is evaluated."""
    value = evaluator.value_of(node, frame)
    for use in effects_before(evaluator, place_of(evaluator, node, frame), _MOVES):
        device = _device(evaluator, use)
        if device is not None:  # else it changes the type
            return Placed(device, "moved", use.node)
    if value.device != "?":
        return Placed(value.device, "moved")
    several = [_since_made(evaluator, one, frame) for one in in_text_order(origins_of(evaluator, value))]
    found = max(several, key=lambda one: one.device == "cuda", default=_GIVEN)
    if found.how != "moved" and isinstance(node, ast.Attribute):
        if evaluator.value_of(node.value, frame).kind == "module":  # a part is where the whole is
            whole = placed(evaluator, node.value, frame)
            found = whole if whole.how == "moved" else found
    return found


def _device(evaluator: Evaluator, use: Use) -> Device | None:
    assert use.row is not None
    if use.row.device == "argument":
        return evaluator.calling.device(use.node, use.frame)
    return use.row.device  # type: ignore[return-value]


def _since_made(evaluator: Evaluator, origin: Any, frame: Frame) -> Placed:
    """What is done to a network anywhere since it was made, or since a function was given it."""
    node, where = origin
    moves = [one for one in since_made(evaluator, origin, _MOVES) if one.frame.function is not frame.function]
    if moves and frame.function.name == "__init__" and moves[0].frame.function.cls is frame.function.cls:
        return Placed("host", "made", moves[0].node)  # moved only after the constructor
    moves.sort(key=lambda one: one.frame.flow.order.get(one.frame.flow.statement_of(one.node), 0))
    for use in reversed(moves):
        flow = use.frame.flow
        if len(moves) > 1 and isinstance(flow.blocks[flow.statement_of(use.node)].owner, ast.If):
            continue  # in some cases only
        return Placed(_device(evaluator, use) or "?", "moved", use.node)
    if isinstance(node, ast.Call):
        row, device = evaluator.row_of(node, where), keyword(node, "device")
        if row is not None and row.gives == "copy":
            source = lambda: placed(evaluator, node.args[0], where)  # noqa: E731
            return remembered(where.memo, ("copied", node), _GIVEN, source)  # type: ignore[no-any-return]
        if device is not None:
            return Placed(evaluator.calling.device_of(device, where), "moved", node)
        is_seen = evaluator.value_of(node.func, where).kind in ("class", "library")
        if is_seen and keyword(node, "device_map") is None:
            return Placed("host", "made", node)
    return _GIVEN


def moved_anywhere(evaluator: Evaluator, node: Any, frame: Frame) -> Placed:
    """Where the network that an expression gives is in the end: as `placed`, or where it is moved to only afterwards."""
    last = placed(evaluator, node, frame)
    if last.how == "moved":
        return last
    origins = in_text_order(origins_of(evaluator, evaluator.value_of(node, frame)))
    uses = [use for one in origins for use in since_made(evaluator, one, _MOVES)]
    moves = [Placed(to, "moved", one.node) for one in uses if (to := _device(evaluator, one)) is not None]
    return next((one for one in moves if one.device == "cuda"), [last, *moves][-1])

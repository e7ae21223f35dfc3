"""Where a network is at one place of a function: the last that was done to it before, under whatever name; else where it was made."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpulint.analysis.domain.values import UNKNOWN, Device, in_text_order
from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, remembered
from gpulint.analysis.models.table import Row
from gpulint.analysis.queries.effects import effects_before, origins_of, place_of, since_made
from gpulint.analysis.syntax.nodes import argument, keyword

_MOVES: Final = frozenset({"moves"})
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
    for use in effects_before(evaluator, place_of(evaluator, node, frame), _MOVES):
        assert use.row is not None
        device = _device(evaluator, use.row, use.node, frame)
        if device == "host" and not {*use.frame.flow.conditions(use.node)} <= {*frame.flow.conditions(node)}:
            continue  # some of the time: `model.cuda() if args.cuda else model.cpu()`
        if device is not None:  # else it changes the type
            return Placed(device, "moved", use.node)
    if value.device != "?":
        return Placed(value.device, "moved")
    found: Placed | None = None
    for origin in in_text_order(origins_of(evaluator, value)):
        one = _since_made(evaluator, origin, frame)
        if found is None or one.device == "cuda" or (found.device == "host" and one.device == "?"):
            found = one
    if (found is None or found.how != "moved") and isinstance(node, ast.Attribute):
        if evaluator.value_of(node.value, frame).kind == "module":  # a part is where the whole is
            whole = placed(evaluator, node.value, frame)
            found = whole if whole.how == "moved" else found
    return found or Placed("?", "given")


def _device(evaluator: Evaluator, row: Row, call: ast.Call, frame: Frame) -> Device | None:
    if row.device == "argument":
        found = evaluator.calling.device(call, frame)
        return set_device(evaluator, argument(call, 0, "device"), frame) if found == "?" else found
    return row.device  # type: ignore[return-value]


def set_device(evaluator: Evaluator, node: Any, frame: Frame) -> Device:
    """The device that an attribute names by what others set it to, where all set the same: `config.device = torch.device("cuda")`."""
    base = evaluator.value_of(node.value, frame) if isinstance(node, ast.Attribute) else UNKNOWN
    places: set[Device] = set()
    for made, where in base.origins if base.kind == "unknown" else ():
        for use in consumers(evaluator, made, where, "object") if where is not None else ():
            statement = use.frame.flow.statement_of(use.node)
            if use.role == "set" and use.name == node.attr and isinstance(statement, ast.Assign):
                places.add(evaluator.calling.device_of(statement.value, use.frame))
    return places.pop() if len(places) == 1 else "?"


def _since_made(evaluator: Evaluator, origin: Any, frame: Frame) -> Placed:
    """What is done to a network anywhere since it was made, or since a function was given it."""
    node, where = origin
    moves = [one for one in since_made(evaluator, origin, _MOVES) if one.frame.function is not frame.function]
    if moves and frame.function.name == "__init__" and moves[0].frame.function.cls is frame.function.cls:
        return Placed("host", "made", moves[0].node)  # moved only after the constructor
    moves.sort(key=lambda one: one.frame.flow.order.get(one.frame.flow.statement_of(one.node), 0))
    found = []
    for use in reversed(moves):
        flow = use.frame.flow
        if len(moves) > 1 and isinstance(flow.blocks[flow.statement_of(use.node)].owner, ast.If):
            continue  # in some cases only
        assert use.row is not None
        found.append(Placed(_device(evaluator, use.row, use.node, use.frame) or "?", "moved", use.node))
    if found:  # of several functions nothing tells which is the last
        several = len({use.frame.function for use in moves}) > 1
        return next((one for one in found if several and one.device == "cuda"), found[0])
    if isinstance(node, ast.Call) and where is not None:
        made = evaluator.value_of(node.func, where)
        row = evaluator.table.function(made.ref)
        if row is not None and row.gives == "copy" and node.args:
            source = node.args[0]
            found = remembered(where.memo, ("copied", node), None, lambda: placed(evaluator, source, where))
            return found or Placed("?", "given")  # a copy of itself
        device = keyword(node, "device")
        if device is not None:
            return Placed(evaluator.calling.device_of(device, where), "moved", node)
        # an optimizer's states are where its parameters are
        if getattr(row, "gives", "") != "optimizer" and _stays_where_made(evaluator, node, where):
            whole = remembered(where.memo, ("whole", frame), None, lambda: _whole(evaluator, where, frame))
            return whole or Placed("host", "made", node)
    return Placed("?", "given")


def _whole(evaluator: Evaluator, within: Frame, frame: Frame) -> Placed | None:
    """Where a network is that a constructor makes a part of, once it is moved."""
    cls = within.function.cls if within.function.name == "__init__" else None
    own = within.receiver or (evaluator.instance(cls) if cls is not None else UNKNOWN)
    made = origins_of(evaluator, own) if own.kind == "module" else ()
    found = (_since_made(evaluator, one, frame) for one in in_text_order(made))
    is_unseen = own.kind == "module" and not made and frame.function is not within.function
    unseen = Placed("?", "given") if is_unseen else None  # whoever makes the whole may move it
    return next((one for one in found if one.how == "moved"), unseen)


def _stays_where_made(evaluator: Evaluator, node: ast.Call, frame: Frame) -> bool:
    """Whether what makes a network is seen, and is given nothing that speaks of a device."""
    if keyword(node, "device_map") is not None:
        return False
    made = evaluator.value_of(node.func, frame)
    if made.kind == "library" and isinstance(made.ref, str):
        module, dot, name = made.ref.rpartition(".")
        row = evaluator.table.own(module or "builtins", name)
        return row.does != "unseen" if row is not None else bool(dot)
    return made.kind == "class"


def moved_anywhere(evaluator: Evaluator, node: Any, frame: Frame) -> Placed:
    """Where the network that an expression gives is in the end: as `placed`, or where it is moved to only afterwards."""
    last = placed(evaluator, node, frame)
    if last.device == "cuda" or last.how == "moved":
        return last
    for origin in in_text_order(origins_of(evaluator, evaluator.value_of(node, frame))):
        for use in since_made(evaluator, origin, _MOVES):
            assert use.row is not None
            device = _device(evaluator, use.row, use.node, use.frame)
            if device == "cuda":
                return Placed("cuda", "moved", use.node)
            if device is not None:
                last = Placed(device, "moved", use.node)
    return last

"""Whether a network trains: whether its weights want gradients, and which optimizers have them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from gpulint.analysis.domain.values import UNKNOWN, Value, in_text_order
from gpulint.analysis.evaluate.consumers import PARAMETERS, Use
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, remembered
from gpulint.analysis.evaluate.weights import weight
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.calls import entered_by, runs_any
from gpulint.analysis.queries.effects import (
    Place,
    effects_before,
    may_be_before,
    origins_of,
    share,
    uses_since_made,
)
from gpulint.analysis.queries.networks.runs import is_of_module
from gpulint.analysis.queries.outcome import place_in
from gpulint.analysis.syntax.flow import Block
from gpulint.analysis.syntax.nodes import argument, called_on, iterated

_DEEPEST: Final = 3  # calls that are gone into
_SWITCHING: Final = frozenset({"requires_grad", "requires_grad_"})
_SWITCHES: Final = frozenset({"freezes", "unfreezes", "requires grad"})  # what rows say of it


def frozen(evaluator: Evaluator, value: Value, before: Place | None = None) -> Any:
    """The node that takes the weights of a network out of autograd, all of them and for good, anywhere or before a place; None where
    nothing does."""
    last = last_switch(evaluator, value, before) if before is not None else None
    if last is not None:
        return last[0] if last[1] else None
    if before is not None and (context := _frozen_by_context(evaluator, value, before)) is not None:
        return context
    by = None
    for origin in in_text_order(origins_of(evaluator, value)):
        several = _switches_of(evaluator, origin)
        if before is not None:
            several = [one for one in several if may_be_before(evaluator, one[0], before)]
        is_off = bool(several) and all(off for _, off in several)  # and none switches them on again
        found = several[0][0].node if is_off else _frozen_in_parts(evaluator, origin, before)
        if found is None and not isinstance(origin[0], ast.arg):
            return None  # what nobody is seen to give says nothing
        by = by or found
    return by


def _frozen_by_context(evaluator: Evaluator, value: Value, place: Place) -> Any:
    """A context of the project around a place, or around a call that leads to it, that freezes what it is given: the network, or parts of it."""
    sites = ((one.call, one.frame) for one in evaluator.callers(place.frame.around[-1].function))
    items = [
        (item.context_expr, frame)
        for at, frame in (*place.frame.leading_to(place.at), *sites)
        for block in frame.flow.around(at)
        if isinstance(block.owner, ast.With)
        for item in block.owner.items
    ]
    for node, frame in items:
        method = evaluator.method(evaluator.value_of(node, frame).ref, "__enter__")
        if method is None or not runs_any(evaluator, method, _freezes) or not isinstance(node, ast.Call):
            continue
        given = [evaluator.value_of(one, frame) for one in node.args]
        made = {one for each in _weighty(evaluator, given) for one in origins_of(evaluator, each)}
        if share(all_made(evaluator, value), made):
            return node
    return None


def _freezes(evaluator: Evaluator, function: Function) -> bool:
    """Whether a function itself says of something that it wants no gradients."""
    flow, frame = function.flow, evaluator.root(function)
    keys = (several for key, several in flow.definitions.items() if key.endswith(".requires_grad"))
    values = [one.value for several in keys for one in several if one.kind == "assign"]
    values += [one.args[0] for one in flow.calls.get("requires_grad_", ()) if one.args]
    return any(evaluator.value_of(one, frame).const is False for one in values)


def last_switch(
    evaluator: Evaluator, value: Value, place: Place, depth: int = _DEEPEST
) -> tuple[Any, bool] | None:
    """What last switches, in any case before a place, whether a network's weights want gradients: the node, and whether off. In the
    function of the place, in the nearest that leads to it, or in all of its callers alike."""
    origins = in_text_order(origins_of(evaluator, value))
    several = [one for origin in origins for one in _switches_of(evaluator, origin)]
    if all(where is None for _, where in value.origins):  # made out of sight: by its key
        several += _switching(evaluator, effects_before(evaluator, place, _SWITCHES))
    if not several:
        return None
    for at, frame in place.frame.leading_to(place.at):
        here = replace(place, at=at, frame=frame)
        found = [one for use, off in several for one in _switched_before(evaluator, use, off, here)]
        if found:
            return max(found, key=lambda one: one[0])[1:]
    sites = evaluator.callers(place.frame.around[-1].function) if depth else ()
    places = (replace(place, at=one.call, frame=one.frame) for one in sites)
    above = [last_switch(evaluator, value, one, depth - 1) for one in places]
    alike = None not in above and len({off for _, off in filter(None, above)}) == 1
    return above[0] if alike else None


def _switched_before(
    evaluator: Evaluator, use: Use, off: bool, place: Place
) -> Iterator[tuple[int, Any, bool]]:
    """Where the function of a place gets to a switch in any case before it, itself or by a call of the function that switches: in which
    statement, at which node, and whether off."""
    flow, function = place.frame.flow, place.frame.function
    node = place_in(function, use.node, use.frame)
    found = [(node, off)] if node is not None else []
    sites = evaluator.callers(use.frame.around[-1].function) if node is None else ()
    for site in (one for one in sites if one.frame.function is function):
        frame = _run_by(evaluator, use.frame, site.call, place.frame)
        switched = switches_weights(evaluator, replace(use, frame=frame)) if frame is not None else None
        found += [(site.call, switched)] if switched is not None else []
    around, before = list(flow.around(place.at)), flow.order.get(flow.statement_of(place.at), 0)
    for node, switched in found:
        statement = flow.statement_of(node)
        blocks = [one for one in flow.around(statement) if not _goes_through_parts(evaluator, one, place)]
        if flow.order[statement] < before and all(one in around for one in blocks):
            yield flow.order[statement], node, switched


def _run_by(evaluator: Evaluator, frame: Frame, call: Any, caller: Frame) -> Frame | None:
    """A frame as it is where one call runs the outermost function of those that lead to it."""
    if frame.caller is None:
        return entered_by(evaluator, frame.function, call, caller)
    outer = _run_by(evaluator, frame.caller, call, caller)
    return evaluator.enter(frame.function, frame.call, outer, frame.receiver) if outer is not None else None


def _goes_through_parts(evaluator: Evaluator, block: Block, place: Place) -> bool:
    """Whether a block is the loop through a network's weights, or through several networks, in which they are switched."""
    if _asks_whether_trained(block):
        return True
    through = iterated(block.owner) if block.is_rounds else None
    things = evaluator.element(evaluator.value_of(through, place.frame)) if through is not None else UNKNOWN
    return things.kind in ("parameter", "module")


def _asks_whether_trained(block: Block) -> bool:
    """Whether a block only runs for weights that want gradients: `if p.requires_grad:`."""
    return isinstance(block.owner, ast.If) and getattr(block.owner.test, "attr", "") == "requires_grad"


def _switches_of(evaluator: Evaluator, origin: Any) -> list[tuple[Use, bool]]:
    """What switches, wherever it stands, whether the weights of what was made at a place want gradients, all of them; each with whether off."""

    def found() -> list[tuple[Use, bool]]:
        several = _switching(evaluator, uses_since_made(evaluator, origin))
        return [one for one in several if not _is_of_part(evaluator, one[0], origin)]

    node, where = origin
    return remembered(where.memo, (_switches_of, node), [], found) if where is not None else []


def _switching(evaluator: Evaluator, uses: Iterable[Use]) -> list[tuple[Use, bool]]:
    several = ((one, switches_weights(evaluator, one)) for one in uses)
    return [(one, off) for one, off in several if off is not None]


def _frozen_in_parts(evaluator: Evaluator, origin: Any, before: Place | None) -> Any:
    """What freezes the networks of which a network of the project is made, where its constructor does and it has no other weights."""
    node, where = origin
    made = evaluator.value_of(node, where) if isinstance(node, ast.Call) and where is not None else None
    if made is None or not isinstance(made.ref, Class):
        return None
    if any(one.words & _SWITCHING for name, one in made.ref.methods.items() if name != "__init__"):
        return None
    key = (_frozen_in_parts, node, (before.at, before.frame) if before is not None else None)
    return remembered(where.memo, key, None, lambda: _by_parts(evaluator, made, before))


def _by_parts(evaluator: Evaluator, made: Value, before: Place | None) -> Any:
    weighty = (one for one in parts(evaluator, made) if not weight(evaluator, one).is_none)
    found = [frozen(evaluator, one, before) if one.kind == "module" else None for one in weighty]
    return found[0] if found and None not in found else None


def parts(evaluator: Evaluator, value: Value) -> Iterator[Value]:
    """The networks and weights that a network is made of: those in its attributes, or that it is made with."""
    for node, where in in_text_order(origins_of(evaluator, value)):
        one = evaluator.thing(node, where)
        if isinstance(one.ref, Class):
            yield from _weighty(evaluator, _attributes(evaluator, one, one.ref))
        row = evaluator.row_of(node, where) if isinstance(node, ast.Call) and where is not None else None
        if row is not None and row.weights == "parts":
            yield from _weighty(evaluator, (evaluator.value_of(one, where) for one in node.args))


def _attributes(evaluator: Evaluator, value: Value, cls: Class) -> Iterator[Value]:
    """What the methods of a network bind its attributes to: of one that is a copy nothing."""
    made = evaluator.constructed(value, cls)
    if made is None and any(isinstance(node, ast.Call) for node, _ in value.origins):
        return
    for one in evaluator.program.lineage(cls):
        for method in one.methods.values() if isinstance(one, Class) else ():
            if method.takes_self:
                frame = made if made is not None and method is made.function else evaluator.root(method)
                for key, several in list(method.flow.definitions.items()):
                    if key.startswith(f"{method.self_name}."):
                        yield from (evaluator.definition(each, frame) for each in several)


def _weighty(evaluator: Evaluator, values: Iterable[Value]) -> Iterator[Value]:
    for one in values:
        if one.kind == "dict" and one.parts:
            yield from _weighty(evaluator, (inner for _, inner in one.parts))
        inner = evaluator.element(one) if one.kind in ("list", "tuple", "dict") else one
        if inner.kind in ("module", "parameter"):
            yield inner


def _is_of_part(evaluator: Evaluator, use: Use, origin: Any) -> bool:
    """Whether a call is one of a part of the network: `net.backbone.requires_grad_(False)`, also under another name."""
    base = called_on(use.node)
    base = called_on(base) or base  # `net.backbone.parameters()`
    if isinstance(base, ast.Name) and use.frame.caller is not None:
        made = evaluator.value_of(base, use.frame).origins
        return bool(made) and not share({origin}, made)
    named = evaluator.table.own("module.attributes", getattr(base, "attr", "")) is not None
    return named and share({origin}, evaluator.value_of(base.value, use.frame).origins)


def switches_weights(evaluator: Evaluator, use: Use) -> bool | None:
    """Whether a use of a network switches off (True) or on (False) that its weights want gradients: `net.requires_grad_(False)`, or
    `p.requires_grad = False` in a loop through its parameters."""
    of_weights = use.path[:1] == (PARAMETERS,)
    if use.does in ("freezes", "unfreezes"):
        return use.does == "freezes"
    if use.does == "requires grad" or (of_weights and use.name == "parameters.requires_grad_"):
        given = argument(use.node, 0, "requires_grad")
        return given is not None and evaluator.value_of(given, use.frame).const is False
    if not of_weights or use.role != "set" or use.name != "requires_grad":
        return None
    flow = use.frame.flow
    statement = flow.statement_of(use.node)
    block: Any = flow.blocks[statement]
    whole = block.is_rounds or (_asks_whether_trained(block) and block.parent.is_rounds)
    const = evaluator.value_of(getattr(statement, "value", use.node), use.frame).const
    return (const is False) if whole else None


def of_unseen_package(evaluator: Evaluator, network: Value) -> bool:
    """Whether a network is made by what is not seen, which may have frozen it."""
    made = any(isinstance(node, ast.Call) for node, _ in network.origins)
    return made and evaluator.calling.made_by(network) is None and network.ref is None


def optimizers_of(evaluator: Evaluator, network: Value) -> frozenset[Any]:
    """The calls that make optimizers with weights of a network, or of what it is part of; where none are seen, of its parts."""
    of_whole = _given_weights(evaluator, wholes(evaluator, network))
    return of_whole or _given_weights(evaluator, all_made(evaluator, network))


def _given_weights(evaluator: Evaluator, origins: Iterable[Any]) -> frozenset[Any]:
    uses = (use for one in origins for use in uses_since_made(evaluator, one))
    return frozenset(use.node for use in uses if use.role == "optimized")


def all_made(evaluator: Evaluator, value: Value, depth: int = _DEEPEST) -> set[Any]:
    """Where a network and its parts were made."""
    found = set(origins_of(evaluator, value))
    for one in parts(evaluator, value) if depth else ():
        found |= all_made(evaluator, one, depth - 1)
    return found


def wholes(evaluator: Evaluator, network: Value) -> list[Any]:
    """Where a network was made, and where those were whose methods make it for a part."""
    found = in_text_order(origins_of(evaluator, network))
    for _, where in found:  # grows while it is gone through
        if where is not None and is_of_module(evaluator, where.function):
            own = where.receiver or evaluator.instance(where.function.cls)
            found += [one for one in in_text_order(origins_of(evaluator, own)) if one not in found]
    return found

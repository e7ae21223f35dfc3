"""Whose weights' gradients a backward makes, and who uses them before they are thrown away."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final, Literal, get_args

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.consumers import Use, goes_backward_by
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, outwards, settled
from gpulint.analysis.project.file import File, Function
from gpulint.analysis.queries.calls import may_run
from gpulint.analysis.queries.effects import Place, origins_of, position, share
from gpulint.analysis.queries.networks.trained import all_made, optimizers_of, wholes
from gpulint.analysis.syntax.nodes import argument, called_on, last_name

_DEEPEST: Final = 3  # calls that are gone into
_MOST_CALLERS: Final = 4  # one out of the other
_MOST_WAYS: Final = 8  # on which a program goes on after a backward

Fate = Literal["stepped", "unseen", "cleared", "left"]
_FATES: Final[tuple[Fate, ...]] = get_args(Fate)  # those first of which one says it of all
_AFTER: Final[dict[str, Fate]] = {"step": "stepped", "clear": "cleared", "end": "left"}  # by the first update


@dataclass(frozen=True, slots=True)
class Update:
    """A backward, or the step or the clearing of optimizers or networks, at `call`: `origins` are where those were made, none where that is
    not seen. `entry` is the key under which it is in a dict of several. `end` is that of the program."""

    kind: Literal["backward", "step", "clear", "end"]
    call: Any
    frame: Frame
    origins: frozenset[Any] = frozenset()
    entry: Any = None


@dataclass(frozen=True, slots=True)
class Gradients:
    """What becomes of the gradients that a backward makes of a network's weights: an optimizer steps with them, they are cleared before it
    does, or they are left, as nobody steps the network. `beside`: where the weights and tensors were made that are stepped up to the next
    backward, `None` among it for what is not seen."""

    fate: Fate
    beside: frozenset[Any] = frozenset()


def gradients_of(evaluator: Evaluator, network: Place, backwards: Iterable[Use]) -> Gradients:
    """Of all these backwards, and on all ways on which the program goes on: the use of them, where there is one."""
    found = [one for use in backwards for one in _of_backward(evaluator, network, use)]
    beside = frozenset[Any]().union(*(one.beside for one in found))
    return replace(min(found, key=lambda one: _FATES.index(one.fate)), beside=beside)


def _of_backward(evaluator: Evaluator, network: Place, backward: Use) -> tuple[Gradients, ...]:
    work = lambda: tuple(_fates(evaluator, network, backward))  # noqa: E731
    return settled(evaluator, network.frame, (_of_backward, network.at, backward), work)  # type: ignore[no-any-return]


def _fates(evaluator: Evaluator, network: Place, backward: Use) -> Iterator[Gradients]:
    theirs, entry = optimizers_of(evaluator, network.value), _entry(evaluator, network.at, network.frame)
    ways = _ways_of(evaluator, backward.node, backward.frame)
    until = [one for way in ways for one in takewhile(lambda each: each.kind != "backward", way)]
    steps = {one for one in until if one.kind == "step"}
    beside = frozenset[Any]().union(*(_stepped_by(evaluator, one) for one in steps))
    yield Gradients("left", beside)
    concerned = {node for node, _ in wholes(evaluator, network.value)} | theirs
    if not theirs:  # those that have it for all that is seen
        several = {one for way in ways for one in way if one.kind == "step"}
        steps = {one for one in several if _may_have(evaluator, one, network.value)}
        concerned |= {node for one in steps for node, _ in one.origins}
    if any(not isinstance(node, ast.Call) for one in steps for node, _ in one.origins or ((None, None),)):
        yield Gradients("unseen")
    for way in ways if theirs or steps else ():
        own = (one.kind for one in way if one.kind == "end" or _concerns(one, concerned, entry))
        first = next(own, "")
        if first or theirs:
            clears = not first and _clears_first(evaluator, backward.frame.function.file, concerned, entry)
            yield Gradients("cleared" if clears else _AFTER.get(first, "unseen"))


def _concerns(update: Update, concerned: set[Any], entry: Any) -> bool:
    """Whether it steps or clears one of these, and not that of another entry: of those that one call makes for each entry."""
    made_for_each = all(where is not None and where.flow.loops(node) for node, where in update.origins)
    other = made_for_each and None not in (entry, update.entry) and update.entry != entry
    return any(node in concerned for node, _ in update.origins) and not other


def _clears_first(evaluator: Evaluator, file: File, concerned: set[Any], entry: Any) -> bool:
    """Whether each function of a file that steps something clears its gradients before."""
    several = [updates_in(evaluator, evaluator.root(each)) for each in file.functions]
    own = [[one.kind for _, one in each if _concerns(one, concerned, entry)] for each in several]
    return {kinds[0] for kinds in own if "step" in kinds} == {"clear"}


def _ways_of(evaluator: Evaluator, call: Any, frame: Frame) -> list[list[Update]]:
    """What is done after a call, in order: further down in its function, in the next round of its loops, and then by those who call that
    function: a list for each of them."""
    work = lambda: _ways_after(evaluator, call, frame, _MOST_CALLERS)  # noqa: E731
    return settled(evaluator, frame, (_ways_of, call), work)  # type: ignore[no-any-return]


def _ways_after(evaluator: Evaluator, call: Any, frame: Frame, depth: int) -> list[list[Update]]:
    flow = frame.flow
    at, outermost = position(flow, call), [None, *flow.loops(call)][-1]
    updates = list(updates_in(evaluator, frame))
    found = _of_framework(evaluator, frame)
    found += [one for by, one in updates if position(flow, by) > at]
    found += [one for by, one in updates if position(flow, by) <= at and outermost in flow.loops(by)]
    sites = outwards(evaluator, frame)
    ways = [way for one in sites for way in _ways_after(evaluator, *one, depth - 1)] if depth else []
    if not 0 < len(ways) <= _MOST_WAYS:
        is_end = frame.function.is_module
        ways = [[Update("end", call, frame)] if is_end else _steps_with(evaluator, frame.function)]
    return [found + way for way in ways]


def _of_framework(evaluator: Evaluator, frame: Frame) -> list[Update]:
    """The step that a framework takes after a method, by the optimizers that another one gives it."""
    cls = frame.function.cls
    method = evaluator.method(cls, "configure_optimizers")
    if method is None or not goes_backward_by(evaluator, frame.function):
        return []
    root = evaluator.root(method)
    given = [evaluator.value_of(one.value, root) for one in method.flow.returns if one.value is not None]
    several = [one for value in given for one in _optimizers_in(value)]
    return [Update("step", frame.function.node, frame, one.origins) for one in several]


def _optimizers_in(value: Value) -> Iterator[Value]:
    if value.kind == "optimizer":
        yield value
    for one in value.inside:
        yield from _optimizers_in(one)


def _steps_with(evaluator: Evaluator, function: Function) -> list[Update]:
    """The steps that are given a function: `optimizer.step(closure)`."""
    if function.parent is None:
        return []
    outer = evaluator.root(function.parent)
    given = ((call, one) for call in outer.flow.calls.get("step", ()) for one in call.args)
    those = dict.fromkeys(call for call, one in given if evaluator.value_of(one, outer).ref is function)
    return [own for call in those if (own := _own(evaluator, call, outer)) is not None]


def _entry(evaluator: Evaluator, node: Any, frame: Frame) -> Any:
    """The key under which what an expression gives is in a dict; None where that is not seen."""
    node = frame.flow.unaliased(node)
    if isinstance(node, ast.Subscript):
        return evaluator.index(node, frame)
    is_entry = isinstance(node, ast.Attribute) and evaluator.value_of(node.value, frame).kind == "dict"
    return node.attr if is_entry else None


def updates_in(
    evaluator: Evaluator, frame: Frame, depth: int = _DEEPEST
) -> Iterator[tuple[ast.Call, Update]]:
    """What a function does with gradients, in order, each with the call in it that does it, itself or below."""
    flow, names = frame.flow, _names_of_updates(evaluator)
    for call in sorted(flow.every_call, key=lambda one: position(flow, one)):
        below = depth and may_run(evaluator, call, frame, _updates_any)
        if not (below or last_name(call.func) in names) or evaluator.is_dead(call, frame):
            continue
        own = _own(evaluator, call, frame)
        if own is not None:
            yield call, own
        elif depth:
            made = evaluator.value_of(call.func, frame)
            inner = evaluator.enter(made.function, call, frame, made.receiver) if made.function else None
            several = updates_in(evaluator, inner, depth - 1) if inner is not None else ()
            yield from ((call, one) for _, one in several)


def _names_of_updates(evaluator: Evaluator) -> frozenset[str]:
    return evaluator.table.doing({"backward"}) | {"backward", "step", "zero_grad"}


def _updates_any(evaluator: Evaluator, function: Function) -> bool:
    return not _names_of_updates(evaluator).isdisjoint(function.flow.calls)


def _own(evaluator: Evaluator, call: ast.Call, frame: Frame) -> Update | None:
    on, name = called_on(call), last_name(call.func)
    if on is None:
        return None
    base = evaluator.value_of(on, frame)
    row = evaluator.table.own(base.kind, name)
    is_backward = row is not None and row.does == "backward"
    if is_backward or (name == "backward" and base.kind in ("tensor", "unknown", "number")):
        return Update("backward", call, frame)
    given = [evaluator.value_of(one, frame) for one in call.args]
    stepped = [one for one in given if one.kind == "optimizer"]
    if name == "step" and (base.kind == "optimizer" or stepped or (base.kind == "unknown" and not given)):
        by = call.args[0] if stepped else on
        of = origins_of(evaluator, (*stepped, base)[0])
        return Update("step", call, frame, of, _entry(evaluator, by, frame))
    if name == "zero_grad" and base.kind in ("optimizer", "module"):
        return Update("clear", call, frame, origins_of(evaluator, base), _entry(evaluator, on, frame))
    return None


def _may_have(evaluator: Evaluator, step: Update, network: Value) -> bool:
    """Whether what is stepped is a network, a part of it or what it is a part of, or is not seen."""
    own, made = all_made(evaluator, network), _stepped_by(evaluator, step)
    known = (all_made(evaluator, evaluator.thing(*one)) | {one} for one in made if one is not None)
    return None in made or any(share(own, one) for one in known)


def _stepped_by(evaluator: Evaluator, step: Update) -> set[Any]:
    """Where the tensors were made that an optimizer steps, of a tensor by itself where that was: `None` for what is not seen."""
    made: set[Any] = set() if step.origins else {None}
    for call, frame in step.origins:
        given = argument(call, 0, "params") if isinstance(call, ast.Call) else None
        found = _tensors_in(evaluator, evaluator.value_of(given, frame)) if given is not None else {None}
        made |= found or {(call, frame)}
    return made


def _tensors_in(evaluator: Evaluator, value: Value) -> set[Any]:
    if value.kind in ("parameters", "parameter", "tensor"):  # a tensor by itself is of no network
        return set(origins_of(evaluator, value)) or (set() if value.kind == "tensor" else {None})
    if value.kind not in ("list", "tuple", "dict"):
        return {None}
    inner = evaluator.element(value, "params" if value.kind == "dict" else None)
    if inner.kind == "unknown" and inner.origins:
        return set(inner.origins)
    return _tensors_in(evaluator, inner)

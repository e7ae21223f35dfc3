"""What a forward is given that has the graph of its own last round: state that is fed back, here or by way of an attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpulint.analysis.domain.values import Graph, Value, in_text_order
from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import methods_naming
from gpulint.analysis.syntax.flow import ENTRY, Definition
from gpulint.analysis.syntax.nodes import called_on, constant_index, key_of


@dataclass(frozen=True, slots=True)
class Carried:
    """The argument `node` of a call, which is a key of the function's, and the loop whose rounds hand it on; None where the function's
    calls do."""

    call: ast.Call
    frame: Frame
    node: Any
    key: str
    loop: Any


def carried(evaluator: Evaluator, call: ast.Call, frame: Frame, given: list[Any]) -> Iterator[Carried]:
    """What a call is given of what it has made itself, each part by itself."""
    for node, key in handed_on(call, frame, given):
        reaching = [one for one in frame.flow.reaching(node) if one is not ENTRY]
        values = [*(evaluator.definition(one, frame) for one in reaching), evaluator.value_of(node, frame)]
        if any(_is_made_by(call, frame, one) for one in values):
            yield Carried(call, frame, node, key, next(iter(frame.flow.loops(call)), None))


def handed_on(call: ast.Call, frame: Frame, given: list[Any]) -> Iterator[tuple[Any, str]]:
    """The keys that a call is given as they were left by the last round of its loop, or by the last call of the method."""
    flow = frame.flow
    loops, at = flow.loops(call), flow.order[flow.statement_of(call)]
    for one in _parts(given):
        key = key_of(one)
        if key is None or one not in flow.parents:
            continue
        reaching, several = flow.reaching(one), flow.definitions.get(key, ())
        later = [found for found in several if flow.order.get(found.statement, -1) >= at]
        if loops:
            around = any(found in reaching and loops[0] in flow.loops(found.statement) for found in later)
        else:
            around = bool(later) and ENTRY in reaching and key.startswith(f"{frame.function.self_name}.")
        if around:
            yield one, key


def _parts(given: list[Any]) -> Iterator[Any]:
    for one in given:
        if isinstance(one, ast.Starred):
            yield from _parts([one.value])
        elif isinstance(one, (ast.Tuple, ast.List)):
            yield from _parts(one.elts)
        else:
            yield one


def _is_made_by(call: ast.Call, frame: Frame, value: Value) -> bool:
    """Whether a value has the graph of what a call, or what is called below it, has made."""
    made = [one for one in graph_of(value) if one[1] is not None]
    places = (place for node, where in made for place in where.leading_to(node))
    return any(one is call and where.function is frame.function for one, where in places)


def graph_of(value: Value) -> frozenset[Any]:
    """The calls, with their frames, whose graph a value has, itself or in a part."""
    own = value.origins if value.graph is not Graph.NONE else frozenset()
    return own.union(*(graph_of(one) for one in value.parts or () if isinstance(one, Value)))


def graph_calls(value: Value) -> list[tuple[Any, Frame]]:
    """The same without what is made out of sight, or given."""
    made = (one for one in graph_of(value) if isinstance(one[0], ast.Call) and one[1] is not None)
    return in_text_order(made)


def cuts(evaluator: Evaluator, one: Carried, beside: list[ast.Call]) -> Iterator[Any]:
    """What cuts it in each round, in the block of one of these calls."""
    frame, flow = one.frame, one.frame.flow
    blocks = [flow.blocks[flow.statement_of(call)] for call in beside]
    for each in flow.definitions.get(one.key, ()):
        if any(each.statement in block.statements for block in blocks):
            if not graph_of(evaluator.definition(each, frame)):
                yield each.statement


def set_anew(evaluator: Evaluator, one: Carried, frame: Frame, beside: Any = None) -> Iterator[Any]:
    """The statements by which a function gives the object of a method something else to carry, or the same without its graph, itself or
    by another method, `agent.init_hidden()`: in the rounds of a call, where one is named."""
    cls, flow, name = one.frame.function.cls, frame.flow, one.key.partition(".")[2]
    if one.loop is not None or frame is one.frame or cls is None:
        return
    family = (*evaluator.program.lineage(cls), *evaluator.program.subclasses(cls))
    keys = (key for key in flow.definitions if key.endswith(f".{name}"))
    places = [(each.statement, each.node.value) for key in keys for each in _anew(evaluator, key, frame)]
    for method, key in methods_naming(family, name):
        if method.name not in ("__init__", one.frame.function.name):
            if any(_anew(evaluator, key, evaluator.root(method))):
                calls = flow.calls.get(method.name, ())
                places += [(flow.statement_of(each), called_on(each)) for each in calls]
    for statement, whose in places:
        in_rounds = beside is None or flow.loops(statement)[:1] == flow.loops(beside)[:1]
        if whose is not None and in_rounds:
            value = evaluator.value_of(whose, frame)
            if not value.is_known or not set(family).isdisjoint(value.refs):
                yield statement


def _anew(evaluator: Evaluator, key: str, frame: Frame) -> Iterator[Definition]:
    """Where a function gives an attribute another value, or the same without its graph."""
    for each in frame.flow.definitions.get(key, ()):
        takes_in = each.kind == "assign" and frame.flow.takes_in(each.value, key)
        if each.kind == "assign" and not (takes_in and graph_of(evaluator.definition(each, frame))):
            yield each


def is_cut_within(evaluator: Evaluator, one: Carried) -> bool:
    """Whether the function of the project that the call runs cuts what it is given before it uses it."""
    uses = consumers(evaluator, one.node, one.frame, "graph")
    roles = {use.role for use in uses if any(each is one.call for each, _ in use.frame.chain())}
    return "cuts" in roles and roles <= {"cuts", "reads", "tested"}


def is_table(one: Carried) -> bool:
    """Whether the function looks entries up by their names, or goes through them: `out["emb"]`, `out.items()`."""
    flow = one.frame.flow
    above = [flow.parents.get(use) for use in flow.uses.get(one.key, ())]
    entries = (constant_index(each.slice) for each in above if isinstance(each, ast.Subscript))
    asked = {getattr(each, "attr", "") for each in above}
    return bool(asked & {"items", "keys", "values"}) or any(isinstance(one, str) for one in entries)

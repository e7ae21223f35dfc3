"""Where what is kept is cut from its graph: the expressions that give it, at the place where it is told."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.stores.stores import Store, graph_in
from gpulint.analysis.syntax.nodes import arguments, called_on, key_of

_SUMS: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div)


@dataclass(frozen=True, slots=True)
class Cut:
    """An expression whose value goes on without its graph, and the frame that it stands in."""

    node: Any
    frame: Frame


def cuts(asked: Asked, store: Store, at: Any) -> tuple[Cut, ...]:
    """The expressions of the file that give what is kept its graph, at the place where it is told."""
    if store.frame.caller is None:
        whole, frame = _within(asked, store, at)
        container = store.container if store.container is not store.value else None
        return tuple(_with_graph(asked, whole, frame, container))
    call, frame = list(store.frame.chain())[-1]
    found = [cut for one in arguments(call) for cut in _with_graph(asked, one, frame, None)]
    return tuple(one for one in found if _gets_to(asked, one, store))


def starts(asked: Asked, store: Store) -> tuple[Cut, ...]:
    """What else a function gives an average with a graph: `self.mean = mu` for the first batch."""
    flow, own = store.frame.flow, store.frame.flow.statement_of(store.at)
    whole = (one for one in flow.definitions.get(key_of(store.container) or "", ()) if not one.path)
    given = (one.value for one in whole if one.kind == "assign" and one.statement is not own)
    return tuple(cut for one in given for cut in _with_graph(asked, one, store.frame, store.container))


def _within(asked: Asked, store: Store, at: Any) -> tuple[Any, Frame]:
    """What is stored at a place, and the frame of its function."""
    if at is store.at or at is store.value:
        return store.value, store.frame
    for function in asked.file.functions:
        if at in function.flow.blocks or at in function.flow.parents:
            return getattr(at, "value", at) if isinstance(at, ast.stmt) else at, asked.root(function)
    return store.value, store.frame


def _gets_to(asked: Asked, cut: Cut, store: Store) -> bool:
    """Whether what is given to a call is what the function that is called keeps."""
    flow = store.frame.flow
    uses = consumers(asked.evaluator, cut.node, cut.frame, "graph")
    inside = (flow.statement_of(one.node) for one in uses if one.frame.function is store.frame.function)
    return flow.statement_of(store.at) in inside


def _with_graph(asked: Asked, whole: Any, frame: Frame, container: Any) -> Iterator[Cut]:
    """The operands and entries that have a graph, but for the container itself."""
    own = ast.unparse(container) if container is not None else ""
    stack = [whole]
    while stack:
        node = stack.pop(0)
        inside = _inside(asked, node, own, frame)
        if inside:
            stack = [*inside, *stack]
        elif own not in map(ast.unparse, frame.flow.stands_for(node)) and _has_graph(asked, node, frame):
            yield Cut(node, frame)


def _has_graph(asked: Asked, node: Any, frame: Frame) -> bool:
    value = asked.evaluator.value_of(node, frame)
    return value.kind == "parameter" or bool(graph_in(asked.evaluator, value))


def _inside(asked: Asked, node: Any, own: str, frame: Frame) -> list[Any]:
    """What something that is kept is made of; empty where that has to be cut as it is."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return list(node.elts)
    if isinstance(node, ast.Dict):
        return list(node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SUMS):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Call) and own and any(ast.unparse(one) == own for one in ast.walk(node)):
        base = called_on(node)  # `total.lerp(x, 0.1)`, not `torch.cat([total, x])`
        is_method = base is not None and asked.evaluator.value_of(base, frame).kind != "library"
        return [*([base] if is_method else []), *arguments(node)]
    *_, whole = frame.flow.stands_for(node)
    is_made = isinstance(whole, (ast.Dict, ast.Tuple)) or (own and own in map(ast.unparse, ast.walk(whole)))
    return _inside(asked, whole, own, frame) if is_made and whole.lineno < node.lineno else []


def is_whole(asked: Asked, cut: Cut) -> bool:
    """Whether it is what a network gives, and nothing that has been made less of it."""
    whole = cut.frame.flow.unaliased(cut.node)
    return isinstance(whole, ast.Call) and _runs_network(asked, whole, cut.frame)


def _runs_network(asked: Asked, call: ast.Call, frame: Frame) -> bool:
    """Whether a call runs a network on what has no graph yet: a criterion, say, is given what has one."""
    fed = any(asked.evaluator.value_of(one, frame).graph for one in arguments(call))
    return not fed and forward_of(asked.evaluator, call, frame) is not None


def is_summand(cut: Cut, store: Store) -> bool:
    """Whether it is added itself, and not in a list."""
    node, parents = cut.node, cut.frame.flow.parents
    while node is not store.value and isinstance(parents.get(node), (ast.BinOp, ast.UnaryOp, ast.IfExp)):
        node = parents[node]
    return store.way == "added" and node is store.value

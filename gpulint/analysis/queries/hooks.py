"""The hooks that a function registers on networks and tensors, and what they store of what they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import Graph, Value
from gpulint.analysis.evaluate.consumers import Use, consumers, consumers_of_definition
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.graphs.carried import arguments
from gpulint.analysis.syntax.nodes import argument, last_name

_DEEPEST: Final = 4  # names that lead to a network


@dataclass(frozen=True, slots=True)
class Hook:
    """A call that registers a hook on something of a `kind` that is, or is a part of, what was made at `origins`. `node` is the function
    or the lambda, `inner` a frame of it in which its last parameters are tensors; None where it is not seen. `removed` are the uses of
    the handle that take the hook away, `dropped` where nobody gets it, `shared` where it goes out of sight."""

    call: ast.Call
    frame: Frame
    kind: str
    origins: frozenset[Any]
    node: Any
    inner: Frame | None
    removed: tuple[Use, ...]
    dropped: bool
    shared: bool

    @property
    def name(self) -> str:
        return last_name(self.call.func)


def hooks(evaluator: Evaluator, function: Function) -> Iterator[Hook]:
    """Those that a function registers."""
    frame = evaluator.root(function)
    for name, calls in function.flow.calls.items():
        row = evaluator.table.own("tensor" if name == "register_hook" else "module", name)
        for call in calls if row is not None and row.does == "registers hook" else ():
            func, above = call.func, frame.flow.parents.get(call)
            if isinstance(func, ast.Attribute) and arguments(call) and not evaluator.is_dead(call, frame):
                kind, of = evaluator.value_of(func.value, frame).kind, _origins(evaluator, func.value, frame)
                uses = consumers(evaluator, call, frame, "object")
                removed = tuple(use for use in uses if use.name == "remove")
                shared = isinstance(above, ast.withitem) or any(
                    use.role in ("returned", "given") for use in uses
                )
                node, inner = _function(evaluator, call, frame)
                yield Hook(call, frame, kind, of, node, inner, removed, isinstance(above, ast.Expr), shared)


def _origins(evaluator: Evaluator, node: Any, frame: Frame, depth: int = _DEEPEST) -> frozenset[Any]:
    """Where the networks were made that an expression is, or takes a part of: `dict(net.named_modules())[name]`."""
    value = evaluator.value_of(node, frame)
    if (value.kind in ("module", "modules", "tensor") and value.origins) or not depth:
        return value.origins
    inside = [one for one in ast.walk(node) if isinstance(one, (ast.Name, ast.Attribute)) and one is not node]
    bound = frame.flow.reaching(node) if node in frame.flow.parents else ()
    inside += [one.value for one in bound if one.kind in ("assign", "loop")]
    return frozenset().union(*(_origins(evaluator, one, frame, depth - 1) for one in inside))


def _function(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Any, Frame | None]:
    """The function that is registered: named, bound, an object that is called, or made by another function."""
    given: Any = argument(call, 0, "hook")
    if isinstance(given, ast.Call) and last_name(given.func) == "partial" and given.args:
        given = given.args[0]
    value, name = evaluator.value_of(given, frame), last_name(call.func)
    target = evaluator.method(value.ref, "__call__") if isinstance(value.ref, Class) else value.ref
    made = [(target.node, target)] if isinstance(target, Function) else []
    made += [(node, where.function) for node, where in value.origins if isinstance(node, ast.Lambda)]
    for node, function in made:
        graph = Graph.NONE if "backward" in name or name == "register_hook" else Graph.LIVE
        last = node.args.args[-1 if name in ("register_hook", "register_forward_pre_hook") else -2 :]
        root = evaluator.root(function)
        tensors = {
            one.arg: Value("tensor", graph, size="batch", origins=frozenset({(one, root)})) for one in last
        }
        return node, Frame(function, tensors)
    return None, None


@dataclass(frozen=True, slots=True)
class Stored:
    """What a hook stores: `node`, of this `value`, in `containers`, the innermost first: one more each time (`grows`), or in the place of
    the last. `graph` where it has that of the forward; `uses` are all of it, there and further on."""

    hook: Hook
    use: Use
    node: Any
    value: Value
    containers: tuple[Any, ...]
    graph: bool
    grows: bool
    uses: tuple[Use, ...]

    @property
    def name(self) -> str:
        return self.use.name or ast.unparse(self.containers[-1])


def stored_by(evaluator: Evaluator, hook: Hook) -> Iterator[Stored]:
    """What a hook stores of its tensors, with a graph or without."""
    inner, seen = hook.inner, set()
    if inner is None or inner.given is None:
        return
    for track in ("graph", "storage"):
        for name in inner.given:
            for one in inner.flow.definitions.get(name, ()):
                uses = (
                    consumers_of_definition(evaluator, one, inner, track) if one.kind == "parameter" else []
                )  # type: ignore[arg-type]
                for use in uses:
                    own = inner in (use.frame, *(frame for _, frame in use.frame.chain()))
                    if use.role == "stored" and use.node not in seen and own:
                        seen.add(use.node)
                        graph = track == "graph" and inner.given[name].graph is Graph.LIVE
                        yield _stored(evaluator, hook, use, graph, tuple(uses))


def _stored(evaluator: Evaluator, hook: Hook, use: Use, graph: bool, uses: tuple[Use, ...]) -> Stored:
    func, statement = getattr(use.node, "func", None), use.frame.flow.statement_of(use.node)
    put = isinstance(use.owner, tuple) and getattr(func, "value", None) is use.owner[0]
    node = arguments(use.node)[-1] if put else use.node if func else getattr(statement, "value", use.node)
    grows = (put and use.owner[1].kind != "dict") or isinstance(statement, ast.AugAssign)
    container = (
        use.owner[0] if isinstance(use.owner, tuple) and isinstance(use.owner[0], ast.AST) else use.node
    )
    containers = [container]
    while isinstance(container, (ast.Subscript, ast.Call)):  # `d[k]`, `d.setdefault(k, [])`
        container = (
            container.value
            if isinstance(container, ast.Subscript)
            else getattr(container.func, "value", None)
        )
        containers += [container] if container is not None else []
    value = evaluator.value_of(node, use.frame)
    return Stored(hook, use, node, value, tuple(containers), graph, grows, uses)

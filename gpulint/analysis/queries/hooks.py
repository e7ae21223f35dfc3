"""The hooks that a function registers on networks and tensors, and what they store of what they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import Graph, Value, in_text_order
from gpulint.analysis.evaluate.consumers import Use, consumers, consumers_of_definition, goes_backward_by
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.calls import leading_to
from gpulint.analysis.queries.multiplicity import Multiplicity
from gpulint.analysis.queries.networks.forwards import Forward, forwards
from gpulint.analysis.queries.networks.runs import is_of_module
from gpulint.analysis.queries.stores.stores import owner_of, takes_itself_in
from gpulint.analysis.syntax.nodes import argument, arguments, called_on, last_name

_MOST: Final = 30  # expressions that may lead to a network


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
                handed = any(use.role in ("returned", "given") for use in uses)
                shared = isinstance(above, ast.withitem) or handed
                node, inner = _function(evaluator, call, frame)
                yield Hook(call, frame, kind, of, node, inner, removed, isinstance(above, ast.Expr), shared)


def _origins(evaluator: Evaluator, node: Any, frame: Frame) -> frozenset[Any]:
    """Where the networks were made that an expression is, or takes a part of: `dict(net.named_modules())[name]`."""
    queue, found = [node], frozenset[Any]()
    for at in queue:  # grows while it is gone through
        value = evaluator.value_of(at, frame)
        if value.kind in ("module", "modules", "tensor") and value.origins:
            found |= value.origins
        elif len(queue) < _MOST:
            inside = [one for one in ast.walk(at) if isinstance(one, (ast.Name, ast.Attribute))]
            bound = frame.flow.reaching(at) if at in frame.flow.parents else ()
            inside += [one.value for one in bound if one.kind in ("assign", "loop")]
            queue += [one for one in inside if one not in queue]
    return found or evaluator.value_of(node, frame).origins or frozenset(_given(node, frame))


def _given(node: Any, frame: Frame, depth: int = 4) -> Iterator[tuple[Any, Frame]]:
    """The parameters that an expression is, or is a part or an element of, besides the object: `for layer in layers`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    for one in frame.flow.reaching(node) if isinstance(node, ast.Name) else ():
        if one.kind == "parameter" and one.key != frame.function.self_name:
            yield one.node, frame
        elif one.kind in ("loop", "assign") and depth:
            yield from _given(one.value, frame, depth - 1)


def _function(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Any, Frame | None]:
    """The function that is registered: named, bound, an object that is called, or made by another function."""
    given: Any = argument(call, 0, "hook")
    if isinstance(given, ast.Call) and last_name(given.func) == "partial" and given.args:
        given = given.args[0]
    value, name = evaluator.value_of(given, frame), last_name(call.func)
    target = evaluator.method(value.ref, "__call__") or value.ref
    made = [(target.node, target)] if isinstance(target, Function) else []
    lambdas = (one for one in in_text_order(value.origins) if isinstance(one[0], ast.Lambda))
    made += [(node, where.function) for node, where in lambdas]
    for node, function in made:
        graph = Graph.NONE if "backward" in name or name == "register_hook" else Graph.LIVE
        plain = node.args.args[: len(node.args.args) - len(node.args.defaults)]  # `name=name` is its maker's
        last = plain[-1 if name in ("register_hook", "register_forward_pre_hook") else -2 :]
        root = evaluator.root(function)
        of = {one.arg: frozenset({(one, root)}) for one in last}
        tensors = {name: Value("tensor", graph, size="batch", origins=made) for name, made in of.items()}
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
    definitions = (one for name in inner.given for one in inner.flow.definitions.get(name, ()))
    given = [one for one in definitions if one.kind == "parameter"]
    live = [one for one in given if inner.given[one.key].graph]
    several = [(True, consumers_of_definition(evaluator, one, inner, "graph")) for one in live]
    several += [(False, consumers_of_definition(evaluator, one, inner, "storage")) for one in given]
    for graph, uses in several:
        for use in (one for one in uses if one.role == "stored" and inner in one.frame.around):
            if use.node not in seen and _lasts(evaluator, hook, use):
                found = _stored(evaluator, hook, use, graph, tuple(uses))
                cut = found.value.kind == "tensor" and not found.value.graph  # as under `no_grad`
                if not (cut and found.graph):
                    seen.add(use.node)
                    yield found


def _lasts(evaluator: Evaluator, hook: Hook, use: Use) -> bool:
    """Whether what is stored stays when the hook has returned: it is not in a container of its own."""
    if isinstance(use.owner, Class) or isinstance(hook.node, ast.Lambda):
        return isinstance(hook.node, ast.Lambda)
    into = use.owner[0] if isinstance(use.owner, tuple) and isinstance(use.owner[0], ast.AST) else None
    return into is None or owner_of(evaluator, into, use.frame, use.node).kind != "local"


def _stored(evaluator: Evaluator, hook: Hook, use: Use, graph: bool, uses: tuple[Use, ...]) -> Stored:
    func, statement = getattr(use.node, "func", None), use.frame.flow.statement_of(use.node)
    put = isinstance(use.owner, tuple) and getattr(func, "value", None) is use.owner[0]
    node = arguments(use.node)[-1] if put else use.node if func else getattr(statement, "value", use.node)
    more = isinstance(statement, ast.AugAssign) and (graph or isinstance(node, (ast.List, ast.Tuple)))
    given = use.frame.flow.given.get(node, ())
    more = more or any(takes_itself_in(one, one.key, use.frame) for one in given if graph)
    grows = (put and use.owner[1].kind != "dict") or more
    owned = isinstance(use.owner, tuple) and isinstance(use.owner[0], ast.AST)
    containers = [use.owner[0] if owned else use.node]
    while isinstance(inner := containers[-1], (ast.Subscript, ast.Call)):  # `d[k]`, `d.setdefault(k, [])`
        outer = inner.value if isinstance(inner, ast.Subscript) else called_on(inner)
        if outer is None:
            break
        containers.append(outer)
    value = evaluator.value_of(node, use.frame)
    return Stored(hook, use, node, value, tuple(containers), graph, grows, uses)


def runs_under(multiplicity: Multiplicity, stored: Stored) -> Iterator[tuple[Forward, bool]]:
    """The forwards that run while a hook, and what it fills, is there; and whether they do again and again."""
    evaluator, own = multiplicity.evaluator, stored.hook.frame.function
    made = evaluator.value_of(stored.containers[-1], stored.use.frame).origins if stored.grows else ()
    here = any(use.frame.function is own for use in stored.hook.removed)
    files = dict.fromkeys(one.file for one in leading_to(evaluator, own))
    for function in [own] if here else [one for file in files for one in (file.body, *file.functions)]:
        is_layer = is_of_module(evaluator, function) and not goes_backward_by(evaluator, function)
        if function is not own and is_layer:
            continue
        inside = [node for node, where in made if where is not None and where.function is function]
        for one in forwards(evaluator, function):
            loops = set(function.flow.loops(one.call)).difference(*map(function.flow.loops, inside))
            same = one.network.origins & stored.hook.origins or one.network.ref is (own.cls or own)
            rates = {each.rate for each in multiplicity.of(one.call, one.frame)}
            again = bool(loops or not (inside or here)) and not rates.isdisjoint(("step", "every nth"))
            if same or function is own:
                yield one, again

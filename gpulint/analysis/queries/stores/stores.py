"""Where a value is put so that it stays: into a container, a running total, or an attribute; here, or in a function that is called."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, Literal

from gpulint.analysis.domain.values import Graph, Value, in_text_order
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, given_for, settled
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.calls import called, may_run, runs_any
from gpulint.analysis.queries.networks.behind import source_of
from gpulint.analysis.syntax.flow import Definition, Flow
from gpulint.analysis.syntax.flow import Store as Item
from gpulint.analysis.syntax.nodes import (
    COMPREHENSIONS,
    argument,
    arguments,
    called_on,
    default_of,
    key_of,
    last_name,
)

_DEEPEST: Final = 3  # calls that are gone into
_CALLERS_ASKED: Final = 4
_WHATEVER_IT_IS: Final = ("append", "extend", "appendleft", "setdefault")  # methods that only containers have
_IN_PLACE: Final = frozenset({"add_", "sub_", "lerp_", "index_add_", "addcmul_", "scatter_add_", "copy_"})
_WITH_INDEX: Final = frozenset({"index_add_", "scatter_add_", "addcmul_"})  # what they add comes last
_PARTS: Final = frozenset({"values", "items", "parameters", "named_parameters", "buffers", "named_buffers"})
_JOINING: Final = frozenset({"cat", "stack", "concat", "concatenate", "hstack", "vstack", "lerp", "maximum", "minimum", "max", "min", "where", "sum", "add", "sub", "mean"})  # fmt: skip
_POSITIONS: Final = {"stores first": 0, "stores elements": 0, "stores second": 1}

Way = Literal["put", "added", "averaged", "slot", "latest", "returned"]


@dataclass(frozen=True, slots=True)
class Store:
    """`value` is the expression of what stays, `container` that of where, both of `frame`. `added`: it becomes part of a running total;
    `latest`: the next call takes its place."""

    value: Any
    container: Any
    at: Any
    frame: Frame
    way: Way
    elements: bool = False  # of the value, not itself


def stores(evaluator: Evaluator, function: Function) -> Iterator[Store]:
    """The stores that a function makes, itself or in what it calls with what has a graph."""
    return stores_in(evaluator, evaluator.root(function), lambda value: bool(graph_in(evaluator, value)))


def returns(evaluator: Evaluator, function: Function) -> Iterator[Store]:
    """What a function gives back: whoever calls may keep it."""
    if function.is_module or function.parent is not None or _is_handed_on(function):
        return
    frame = evaluator.root(function)
    for one in function.flow.returns:
        if one.value is not None and not evaluator.is_dead(one, frame):
            yield Store(one.value, one.value, one, frame, "returned")


def is_called(evaluator: Evaluator, function: Function) -> bool:
    """Whether a function is seen to be called: by a name that is it, or on an object of its classes, and not on what nobody knows."""
    sites = ((one.certain, called_on(one.call), one.frame) for one in evaluator.callers(function))
    return any(sure or on is None or evaluator.value_of(on, at).kind != "unknown" for sure, on, at in sites)


def collected(evaluator: Evaluator, function: Function) -> Iterator[Store]:
    """What a step gives to a Lightning module's method for the end of an epoch; of a training step what is beside the loss."""
    phase = function.name.removesuffix("_step")
    is_hook = evaluator.table.own("hooks.LightningModule", function.name) is not None  # not `eval_step`
    if function.cls is None or not is_hook or evaluator.method(function.cls, f"{phase}_epoch_end") is None:
        return
    if all(isinstance(one, Class) for one in evaluator.program.lineage(function.cls)):
        return
    for one in function.flow.returns:
        made: Any = one.value
        whole = [(None, made)] if phase != "training" and made is not None else []
        for key, value in zip(made.keys, made.values, strict=True) if isinstance(made, ast.Dict) else whole:
            if not (phase == "training" and isinstance(key, ast.Constant) and key.value == "loss"):
                yield Store(value, value, value, evaluator.root(function), "returned")


def entries(evaluator: Evaluator, function: Function) -> Iterator[Store]:
    """Entries of a dict of figures that have their graph beside others that somebody has cut, or made numbers."""
    frame = evaluator.root(function)
    rows: dict[str, list[tuple[Any, Any]]] = {}
    for store in frame.flow.stores:
        key = key_of(store.target.value)
        if key is not None and _is_text(store.target.slice) and not store.path:
            rows.setdefault(key, []).append((store.value, store.statement))
    for node in (*frame.flow.of_kind(ast.Dict), *frame.flow.calls.get("dict", ())):
        if isinstance(node, ast.Dict):
            values = node.values if all(map(_is_text, node.keys)) else []
        else:
            values = [one.value for one in node.keywords if one.arg is not None]
        given = (one.key for one in frame.flow.given.get(node, ()) if not one.path)
        if values:
            rows.setdefault(next(given, f"dict at {node.lineno}"), []).extend((one, one) for one in values)
    for key, found in rows.items():
        cut = [value for value, _ in found if _is_cut(value)]
        for value, at in found if cut else ():
            if value not in cut:
                yield Store(value, ast.Name(key), at, frame, "slot")


def _is_format(node: Any) -> bool:
    """Whether an expression is `"conv%d" % i`."""
    left = getattr(node, "left", None)
    return isinstance(left, ast.Constant) and isinstance(left.value, str)


def _is_text(key: Any) -> bool:
    return isinstance(key, (ast.Constant, ast.JoinedStr))


def _is_cut(value: Any) -> bool:
    """Whether an expression ends with a cut, or makes a number."""
    calls = (one for one in ast.walk(value) if isinstance(one, ast.Call))
    return any(last_name(one.func) in ("item", "detach", "float", "tolist") for one in calls)


def _is_handed_on(function: Function) -> bool:
    """Whether a function is named in its file other than to call it: `optimizer.step(closure)`, `optimizer.step(self.closure)`."""
    name = function.name
    keys = (
        (one.flow, key) for one in function.file.naming(name) for key in (name, f"{one.self_name}.{name}")
    )
    uses = ((flow, use) for flow, key in keys for use in flow.uses.get(key, ()))
    return any(getattr(flow.parents.get(use), "func", None) is not use for flow, use in uses)


def given_to_keep(evaluator: Evaluator, function: Function) -> Iterator[Store]:
    """What a function that nobody is seen to call keeps, in its object or in the module, of what it is given, which may have a graph; of a
    network whatever its state takes in, or has added to it."""
    if function.is_module or function.parent is not None or function.name == "__init__":
        return
    if _is_handed_on(function):
        return
    of_network = function.takes_self and evaluator.names.is_part_of_modules(function.cls)
    frame = evaluator.root(function)
    if (of_network and function.name == "forward") or not is_called(evaluator, function):
        own = function.parameters[1 if function.takes_self or function.takes_class else 0 :]
        given = [one for one in own if default_of(function.node, one.arg) is None]
        frame = Frame(function, {one.arg: _as_given(evaluator, one, frame) for one in given})
    elif not of_network:
        return
    for store in own_stores(evaluator, frame):
        name, member = _root(store.container)
        if of_network and store.way in ("averaged", "added"):
            if name is not None and name.id == function.self_name and member:
                yield store
        elif not of_network and store.way in ("put", "added"):
            yield store


def _as_given(evaluator: Evaluator, parameter: ast.arg, frame: Frame) -> Value:
    """What a parameter is by its annotation or its uses, given by whoever is not seen."""
    names, declared = evaluator.names, parameter.annotation
    by_use = names.role(parameter.arg, frame.function)
    found = by_use if declared is None else names.annotated(declared, parameter, frame)
    if found is not None and found.is_known and not found.assumptions:
        return found
    return Value("unknown", Graph.MAY, origins=frozenset({(parameter, frame)}))


def latest(evaluator: Evaluator, function: Function) -> Iterator[Store]:
    """What a method leaves in an attribute of its object, or in one of the slots there, until its next call puts another in its place."""
    if function.cls is None or not function.takes_self or function.name == "__init__":
        return
    frame, begin = evaluator.root(function), f"{function.self_name}."
    for key, definitions in frame.flow.definitions.items():
        for one in definitions if key.startswith(begin) and "[" not in key else ():
            value = part_of(one) if one.kind == "assign" else None
            if value is not None and not frame.flow.takes_in(value, key):  # else a state
                yield Store(value, one.node, one.statement, frame, "latest")
    for item in (one for one in frame.flow.stores if (key_of(one.target.value) or "").startswith(begin)):
        known = evaluator.value_of(item.target.value, frame).kind == "dict"  # in a tensor it has no slot
        if known and not (item.path or _again(item, frame.flow) or _is_counted(item.target.slice, frame)):
            yield Store(item.value, item.target, item.statement, frame, "latest")


def stores_in(
    evaluator: Evaluator, frame: Frame, is_wanted: Callable[[Value], bool], depth: int = _DEEPEST
) -> Iterator[Store]:
    """The stores that a frame's function makes, itself or in what it calls with what is wanted."""
    yield from (one for one in own_stores(evaluator, frame) if not evaluator.is_dead(one.at, frame))
    for call in frame.flow.every_call if depth else ():
        given = arguments(call)
        if not given or not may_run(evaluator, call, frame, _keeps):
            continue
        target, receiver = called(evaluator, call, frame)
        if target is None or not runs_any(evaluator, target, _keeps) or evaluator.is_dead(call, frame):
            continue
        if any(is_wanted(evaluator.value_of(one, frame)) for one in given):
            inner = evaluator.enter(target, call, frame, receiver)
            yield from stores_in(evaluator, inner, is_wanted, depth - 1) if inner is not None else ()


def _keeps(evaluator: Evaluator, function: Function) -> bool:
    """Whether a function stores anything where others find it."""
    flow = function.flow
    if flow.stores or not _IN_PLACE.isdisjoint(flow.calls):
        return True
    known = [evaluator.table.knows(kind) for kind in ("list", "dict", "set")]
    if any(one[name].does.startswith("stores") for one in known for name in flow.calls if name in one):
        return True
    of_others = {*(key for key in flow.definitions if "." in key), *(one.arg for one in function.parameters)}
    made = [one for key in of_others for one in flow.definitions.get(key, ())]
    return any(one.kind == "augmented" or (one.kind == "assign" and "." in one.key) for one in made)


def graph_in(evaluator: Evaluator, value: Value, depth: int = 3, added: bool = False) -> tuple[Value, ...]:
    """The values with a graph in a value: itself, or what is in a list, a tuple or a dict; a parameter has one for what it is added to."""
    if not depth:
        return ()
    if value.kind in ("tuple", "dict") and value.parts:
        found = tuple(inner for one in value.inside for inner in graph_in(evaluator, one, depth - 1))
        if value.kind == "dict":
            found += graph_in(evaluator, evaluator.element(value.but(parts=None)), depth - 1)
        return found
    if value.kind == "object":
        given = [evaluator.value_of(*one) for one in kept_by(evaluator, value)]
        return tuple(inner for one in given for inner in graph_in(evaluator, one, depth - 1))
    if value.kind in ("list", "set", "dict"):
        inside = [value.receiver]
        if not isinstance(value.receiver, Value):
            made = in_text_order(value.origins)
            inside = [item for one in made for item in evaluator.containers.items(*one)]
        return tuple(inner for one in inside for inner in graph_in(evaluator, one, depth - 1))
    if value.graph and value.kind in ("tensor", "unknown", "loaded", "parameter")[: 4 if added else 3]:
        return (value,)
    return ()


def kept_by(evaluator: Evaluator, value: Value) -> Iterator[tuple[Any, Frame]]:
    """What an object keeps of what it is made of: the fields of a record, and what its constructor gives to an attribute as it is."""
    for call, frame in value.calls if value.kind == "object" and isinstance(value.ref, Class) else ():
        yield from ((one, frame) for one in arguments(call) if evaluator.declared_fields(value.ref))
        made: Any = evaluator.constructed(value, value.ref)
        for key, several in made.flow.definitions.items() if made is not None else ():
            named = [one for one in several if isinstance(one.value, ast.Name)]
            yield from ((one.value, made) for one in named if key.startswith(f"{made.function.self_name}."))


def own_stores(evaluator: Evaluator, frame: Frame) -> tuple[Store, ...]:
    """The stores of a function's own statements."""
    made = (_by_methods, _by_subscripts, _totals, _comprehensions)

    def found() -> tuple[Store, ...]:
        several = (one for finds in made for one in finds(evaluator, frame))
        return tuple(one for one in several if not _is_in_data(evaluator, one))

    return settled(evaluator, frame, own_stores, found)  # type: ignore[no-any-return]


def _is_in_data(evaluator: Evaluator, store: Store) -> bool:
    """Whether it goes into a tensor's `data`, which takes in no graph."""
    data = (one for one in ast.walk(store.container) if isinstance(one, ast.Attribute) and one.attr == "data")
    of = (evaluator.value_of(one.value, store.frame).kind for one in data)
    return store.way != "put" and not {"object", "module"}.issuperset(of)


def _by_methods(evaluator: Evaluator, frame: Frame) -> Iterator[Store]:
    rows = {kind: evaluator.table.knows(kind) for kind in ("list", "dict", "set")}
    for name, calls in frame.flow.calls.items():
        if name in _IN_PLACE:
            yield from _in_place(evaluator, calls, frame)
            continue
        if not any(name in known and known[name].does.startswith("stores") for known in rows.values()):
            continue
        for call in calls:
            if not isinstance(call.func, ast.Attribute) or not call.args:
                continue
            kind = evaluator.value_of(call.func.value, frame).kind
            if kind not in rows:
                if kind not in ("unknown", "none", "bottom") or name not in _WHATEVER_IT_IS:
                    continue
                kind = "dict" if name == "setdefault" else "list"
            row = rows[kind].get(name)
            position = _POSITIONS.get(row.does, 9) if row is not None else 9
            if position < len(call.args):
                way: Way = "slot" if kind == "dict" else "put"
                elements = row is not None and row.does == "stores elements"
                yield Store(
                    call.args[position], frame.flow.place(call.func.value), call, frame, way, elements
                )


def _in_place(evaluator: Evaluator, calls: list[ast.Call], frame: Frame) -> Iterator[Store]:
    for call in calls:
        if not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        on, way = call.func.value, "averaged" if call.func.attr == "lerp_" else "added"
        while isinstance(on, ast.Call) and isinstance(on.func, ast.Attribute) and on.func.attr[-1:] == "_":
            way = "averaged" if on.func.attr == "mul_" else way  # `x.mul_(0.9).add_(y)`
            on = on.func.value
        on = frame.flow.place(on)
        key = key_of(on)
        if call.func.attr == "copy_":
            if not frame.flow.takes_in(call.args[0], key):
                continue  # it is overwritten
            way = "averaged"
        if key is not None:
            added = call.args[-1 if call.func.attr in _WITH_INDEX else 0]
            yield Store(added, on, call, frame, way)  # type: ignore[arg-type]


def _by_subscripts(evaluator: Evaluator, frame: Frame) -> Iterator[Store]:
    for store in frame.flow.stores:
        into = frame.flow.place(store.target.value)
        way: Way = "slot"
        if isinstance(store.statement, ast.AugAssign):
            is_list = isinstance(store.value, ast.List)
            way = "put" if is_list else "added"
            yield Store(store.value, store.target, store.statement, frame, way, is_list)
            continue
        if store.path or isinstance(store.statement, (ast.For, ast.AsyncFor)):
            continue
        kind = evaluator.value_of(store.target.value, frame).kind
        if kind == "array":
            continue  # it takes numbers
        if isinstance(store.target.slice, ast.Slice) and kind not in ("list", "dict", "object"):
            # it has the graph of all that was written before
            way = "averaged" if frame.flow.takes_in(store.value, key_of(into)) else "added"
        elif kind == "tensor":
            way = "added"
        elif again := _again(store, frame.flow):
            way, into = again, store.target
        elif _is_counted(store.target.slice, frame):
            way = "put"
        yield Store(store.value, into, store.statement, frame, way)


def _again(store: Item, flow: Flow) -> Way | None:
    """How what is computed for a slot takes in what is in it: `d[k]` itself, `d.get(k, 0)`, or either by a name; None where it does not."""
    spelled = ast.unparse(store.target)

    def is_own(node: Any) -> bool:
        whole = flow.unaliased(node)
        of = called_on(whole, "get")
        is_item = isinstance(whole, ast.Subscript) and ast.unparse(whole) == spelled
        return is_item or (of is not None and ast.unparse(of) == spelled.partition("[")[0])

    parts = flow.computed_of(store.value) if isinstance(flow.unaliased(store.value), ast.BinOp) else []
    if not any(map(is_own, parts)):
        return None
    products = (one for one in parts if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult))
    return "averaged" if any(is_own(one.left) or is_own(one.right) for one in products) else "added"


def _is_counted(index: Any, frame: Frame) -> bool:
    """Whether an index is another one each time: a counter of rounds, or of calls."""
    parts = list(ast.walk(index))
    if any(isinstance(one, ast.JoinedStr) or _is_format(one) for one in parts):
        return False
    for one in parts:
        key = key_of(one) if one in frame.flow.parents else None
        if key is None:
            continue
        for found in frame.flow.definitions.get(key, ()):
            of_itself = found.kind == "assign" and frame.flow.takes_in(found.value, key)
            if of_itself or found.kind == "augmented":
                return True
        for found in frame.flow.reaching(one):
            given = frame.argument(key) if found.kind == "parameter" else None
            if given is not None and _is_counted(*given):
                return True
            iterated = frame.flow.unaliased(found.value) if found.kind == "loop" else None
            if isinstance(iterated, ast.Call):
                name = last_name(iterated.func)
                if name in ("range", "trange", "count") or (name == "enumerate" and found.path[:1] == (0,)):
                    return True
    return False


def _totals(evaluator: Evaluator, frame: Frame) -> Iterator[Store]:
    for key, definitions in frame.flow.definitions.items():
        for one in definitions:
            if one.kind == "augmented" and not isinstance(one.node, ast.Subscript):
                is_list = evaluator.value_of(one.node, frame).kind == "list"
                itself = frame.flow.takes_in(one.value, key)
                way: Way = "put" if is_list else "averaged" if itself else "added"
                yield Store(one.value, one.node, one.statement, frame, way, is_list)
            elif one.kind == "assign" and takes_itself_in(one, key, frame):
                way = "averaged" if _is_scaled(key, one, frame) else "added"
                yield Store(part_of(one), one.node, one.statement, frame, way)


def part_of(definition: Definition) -> Any:
    """The expression that a key is given: of several that are given at once its own."""
    value = definition.value
    for index in definition.path:
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        if not isinstance(index, int) or not -len(parts) <= index < len(parts):
            return None
        counted = parts[index:] if index < 0 else parts[: index + 1]
        if any(isinstance(one, ast.Starred) for one in counted):
            return None
        value = parts[index]
    return value


def _is_scaled(key: str, definition: Definition, frame: Frame) -> bool:
    """Whether what a key was given the last time is made less before it is added to: an average."""
    above = [frame.flow.parents.get(one) for one in _own_terms(definition, key, frame)]
    multiplied = any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult) for one in above)
    return multiplied or any(isinstance(one, ast.Call) and last_name(one.func) == "lerp" for one in above)


def takes_itself_in(definition: Definition, key: str, frame: Frame) -> bool:
    """Whether what a key is given is computed from what it was given the last time, by arithmetic or by joining them."""
    return next(_own_terms(definition, key, frame), None) is not None


def _own_terms(definition: Definition, key: str, frame: Frame) -> Iterator[Any]:
    """The uses of what a key was given the last time in what it is given."""
    flow, value = frame.flow, part_of(definition)
    if value is None or isinstance(value, (ast.Attribute, ast.Constant)):
        return
    for use in flow.uses.get(key, ()):
        reaching = _with_earlier(flow, flow.reaching(use), "augmented")
        again = definition in reaching or ("." in key and any(one.kind == "entry" for one in reaching))
        before = flow.order[flow.statement_of(use)] <= flow.order[definition.statement]
        if again and before and _is_term_of(use, value, flow):
            yield use


def _with_earlier(flow: Flow, definitions: Iterable[Definition], kind: str) -> set[Definition]:
    """Definitions of a key, and what it was before it was changed in such a way."""
    found, stack = set[Definition](), list(definitions)
    while stack:
        one = stack.pop()
        if one not in found:
            found.add(one)
            stack += flow.reaching(one.node) if one.kind == kind else ()
    return found


_SUMS = (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Attribute, ast.Call)
_TERMS = (*_SUMS, ast.List, ast.Tuple, ast.Dict, ast.Starred, ast.keyword)


def _is_term_of(use: Any, value: Any, flow: Flow, joined: bool = False, depth: int = 3) -> bool:
    """Whether a use goes into a value by arithmetic, or is joined with others in it; also by a name that what it is a part of is given."""
    node = use
    while node is not value:
        named = flow.named(node) if depth else ()
        if any(_is_term_of(other, value, flow, joined, depth - 1) for other in named):
            return True
        node = flow.parents.get(node)
        joined = joined or isinstance(node, (ast.BinOp, ast.Call, ast.Starred, ast.Dict))
        if not isinstance(node, _TERMS) or (isinstance(node, ast.IfExp) and use is node.test):
            return False
        if isinstance(node, ast.Call) and last_name(node.func) not in _JOINING:
            return False
    return joined


def chosen_by_author(value: Any) -> Any:
    """A condition that chooses between a value and the same one cut off: `out if differentiable else out.detach()`."""
    for one in (part for part in ast.walk(value) if isinstance(part, ast.IfExp)):
        for whole, cut in ((one.body, one.orelse), (one.orelse, one.body)):
            of = called_on(cut, "detach", "item")
            if of is not None and ast.dump(of) == ast.dump(whole):
                return one.test
    return None


def leaves(store: Store) -> Iterator[Any]:
    """The expressions of what is stored: those in a display, each by itself."""
    stack = [store.value]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            stack += node.elts
        elif isinstance(node, ast.Dict):
            stack += node.values
        else:
            yield node


def _comprehensions(evaluator: Evaluator, frame: Frame) -> Iterator[Store]:
    for node in frame.flow.of_kind(ast.ListComp, ast.DictComp):
        elt = node.elt if isinstance(node, ast.ListComp) else node.value
        yield Store(elt, node, elt, frame, "put")


# -- where it is put


@dataclass(frozen=True, slots=True)
class Round:
    """A loop whose rounds store again."""

    loop: Any
    frame: Frame


@dataclass(frozen=True, slots=True)
class Owner:
    """What a store goes into in the end: a name's container (`local`), one of an object that lives as long as nobody knows (`object`), of the
    module or of a function around (`outer`), or one that a caller gives (`given`). `rounds` are the loops that fill it, the innermost first,
    `at` the place in its own frame that does. `attributes` are those of classes that lead there."""

    kind: Literal["local", "object", "outer", "given", "unseen"]
    key: str
    at: Any
    frame: Frame
    rounds: tuple[Round, ...]
    attributes: tuple[tuple[Class, str], ...] = ()

    @property
    def birth(self) -> Any:
        """The loop that makes it anew in each of its rounds; None where none does."""
        filling = [one.loop for one in self.rounds if one.frame is self.frame]
        return next((loop for loop in self.frame.flow.loops(self.at) if loop not in filling), None)


def owner_of(
    evaluator: Evaluator,
    container: Any,
    frame: Frame,
    at: Any,
    rounds: tuple[Round, ...] = (),
    attributes: tuple[tuple[Class, str], ...] = (),
    depth: int = 8,
) -> Owner:
    """Where a container that an expression names lives, and which loops around a place run while it does."""
    flow = frame.flow
    if isinstance(container, COMPREHENSIONS):
        given = flow.given.get(container)
        key = key_of(given[0].node) if given else None
        return Owner("local", key or "the list", at, frame, (*rounds, Round(container, frame)))
    name, member = _root(container)
    spelled = key_of(container) or (name.id if name is not None else "")
    if name is None or not depth:
        return Owner("unseen", ast.unparse(container), at, frame, _around(at, frame, rounds), attributes)
    key = f"{name.id}.{member}" if member else name.id
    around = _around(at, frame, rounds)
    inside, by = _until_emptied(key, spelled, at, frame)
    if by is not None:
        return Owner("local", key, at, frame, (*rounds, *inside), attributes)
    definitions = [one for one in _unchanged(name, frame) if one.kind != "entry"]
    own = frame.function
    first = next((one for one in definitions if one.kind == "parameter"), None)
    if first is not None and isinstance(first.node, ast.arg) and flow.parents.get(first.node) is own.node:
        if own.takes_self and name.id == own.self_name and own.cls is not None:
            attributes = (*attributes, (own.cls, member))
            if frame.caller is None:
                return Owner("object", key, at, frame, around, attributes)
            func = frame.call.func
            of_object = isinstance(func, ast.Attribute) and own.name not in ("__call__", "forward")
            base = func.value if of_object else func
            return owner_of(evaluator, base, frame.caller, frame.call, around, attributes, depth - 1)
        by_call = frame.argument(name.id)
        if by_call is not None:
            return owner_of(evaluator, *by_call, frame.call, around, attributes, depth - 1)
        sites = evaluator.callers(own)[:_CALLERS_ASKED] if frame.given is None else ()
        owners = [
            owner_of(evaluator, given, site.frame, site.call, around, attributes, max(depth - 3, 0))
            for site in sites
            if (given := given_for(own, name.id, site.call)) is not None
        ]
        lasting = [one for one in owners if one.kind != "local" or one.rounds]
        return (lasting or owners or [Owner("given", key, at, frame, around, attributes)])[0]
    if not definitions:
        cls = evaluator.value_of(name, frame).ref
        if member and isinstance(cls, Class):
            attributes = (*attributes, (cls, member))
        return Owner("outer", key, at, frame, around, attributes)
    anew = isinstance(name.ctx, ast.Store) and isinstance(at, (ast.Assign, ast.AnnAssign))
    base = next(
        (found for one in definitions if not anew and (found := _alias(one, frame.flow)) is not None), None
    )
    if base is not None and base is not container:
        return owner_of(evaluator, base, frame, at, rounds, attributes, depth - 1)
    fresh = [one for one in definitions if not (one.kind == "augmented" or takes_itself_in(one, key, frame))]
    made = [flow.loops(one.statement) for one in fresh]
    filling = takewhile(lambda loop: not made or any(loop not in one for one in made), flow.loops(at))
    return Owner("local", key, at, frame, (*rounds, *(Round(one, frame) for one in filling)), attributes)


@dataclass(frozen=True, slots=True)
class Bound:
    """What lets a container hold so many at most; `most` is None where the number is not seen."""

    by: Any
    most: float | None


def bounded(evaluator: Evaluator, store: Store) -> Bound | None:
    """What bounds a container: a `deque` with a `maxlen`, an index that begins anew, or that the first goes as another comes; None where
    nothing does."""
    key, flow = key_of(store.container), store.frame.flow
    for call in flow.calls_on({key}, "pop", "popleft"):
        first = last_name(call.func) == "popleft" or [ast.unparse(one) for one in call.args] == ["0"]
        if first and (set(flow.loops(store.at)) & set(flow.loops(call)) or not flow.loops(store.at)):
            return Bound(call, 1)
    sizes = [(one, store.frame) for one in _ring(store)]
    for made, frame in evaluator.value_of(store.container, store.frame).calls:
        most = argument(made, 1, "maxlen") if last_name(made.func) == "deque" else None
        if most is not None and not (isinstance(most, ast.Constant) and most.value is None):
            sizes.append((most, frame))
    for size, frame in sizes:
        number = evaluator.value_of(size, frame).const
        return Bound(size, number if isinstance(number, (int, float)) else None)
    return None


def _ring(store: Store) -> Iterator[Any]:
    """What an index is taken modulo, where it is stored in one slot after the other and then in the first again."""
    if not isinstance(store.at, ast.Assign) or not isinstance(store.at.targets[0], ast.Subscript):
        return
    flow, index = store.frame.flow, store.at.targets[0].slice
    given = [one.value for one in flow.definitions.get(key_of(index) or "", ()) if one.kind == "assign"]
    parts = (part for one in (index, *given) for part in flow.computed_of(one))
    remainders = (one for one in parts if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod))
    yield from (one.right for one in remainders if not _is_format(one))


def _around(at: Any, frame: Frame, rounds: tuple[Round, ...]) -> tuple[Round, ...]:
    return (*rounds, *(Round(loop, frame) for loop in frame.flow.loops(at)))


def _root(node: Any) -> tuple[ast.Name | None, str]:
    """The name that an expression of a container begins with, and the first attribute of it."""
    member = ""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            member, node = node.attr, node.value
        elif isinstance(node, (ast.Subscript, ast.Starred)):
            node = node.value
        elif called_on(node) is not None:  # `d.setdefault(k, [])`
            member, node = "", called_on(node)
        else:
            return None, ""
    return node, member


def _unchanged(name: Any, frame: Frame) -> set[Definition]:
    """What gives a name its object, however it has been changed since."""
    given = list(frame.flow.reaching(name))
    # what it was before it is given anew
    if isinstance(name.ctx, ast.Store) and not frame.flow.is_bound(name):
        given += [one for one in frame.flow.definitions.get(name.id, ()) if one.node is not name]
    return {one for one in _with_earlier(frame.flow, given, "inplace") if one.kind != "inplace"}


def _alias(definition: Definition, flow: Flow) -> Any:
    """The expression that a name is another name of: `losses = self.losses`, `for meter in meters`."""
    value = definition.value
    if definition.kind == "assign" and not definition.path:
        return value if isinstance(value, (ast.Attribute, ast.Subscript, ast.Name)) else None
    if definition.kind == "loop":
        value = source_of(definition, flow)[0]
        value = called_on(value, *_PARTS) or value
        return value if isinstance(value, (ast.Attribute, ast.Name)) else None
    return None


def _until_emptied(key: str, spelled: str, at: Any, frame: Frame) -> tuple[list[Round], Any]:
    """The loops around a place that run before something in all rounds of the next one empties the container; and that."""
    flow = frame.flow
    loops = flow.loops(at)
    for by in emptying(key, spelled, frame):
        if by is flow.statement_of(at):
            continue
        passed = (ast.With, ast.AsyncWith, ast.Try)
        blocks = (one for one in flow.around(by) if not isinstance(one.owner, passed))
        block = next((one for one in blocks if not one.is_rounds or one.owner in loops), None)
        if block is None:
            continue
        if block.is_rounds and block.owner in loops:
            return [Round(loop, frame) for loop in loops[: loops.index(block.owner)]], by
        if block.owner is frame.function.node and "." in key and frame.function.name != "__init__":
            return [Round(loop, frame) for loop in loops], by
    return [], None


def emptying(key: str, spelled: str, frame: Frame) -> Iterator[Any]:
    """The statements of a function that empty a container or give its key another one: not those that make a name another name of one."""
    flow = frame.flow
    keys = {key, spelled}
    for one in keys:
        for definition in flow.definitions.get(one, ()):
            named = isinstance(definition.node, ast.Name) and _alias(definition, flow) is not None
            anew = definition.kind == "assign" and not (named or takes_itself_in(definition, one, frame))
            if anew or definition.kind == "delete":
                loops = isinstance(definition.statement, (ast.For, ast.AsyncFor))
                if not loops and not flow.is_first(one, definition.statement):
                    yield definition.statement
    for call in flow.calls_on(keys, "clear", "zero_", "popleft", "detach_"):
        yield flow.statement_of(call)
    deletes = (one for one in flow.blocks if isinstance(one, ast.Delete))
    for node, target in ((one, each) for one in deletes for each in one.targets):
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
            if key_of(target.value) in keys:
                yield node

"""What is stored again and again while it stays on a device: what it is, and what becomes of all of it together."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from gpulint.analysis.domain.values import Device, Value
from gpulint.analysis.evaluate.consumers import ANY, Use, consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, remembered
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.calls import entered
from gpulint.analysis.queries.networks.behind import behind, made_of, put_into, sources
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.stores.stores import Store, stores_in
from gpulint.analysis.syntax.nodes import argument, arguments, key_of, keyword, last_name

_MOST: Final = 40  # operations
JOINING: Final = frozenset("cat stack concat concatenate hstack vstack dstack row_stack".split())
_IDS: Final = frozenset({"argmax", "argmin", "multinomial"})
_SAME: Final = frozenset(
    "clone contiguous detach float half bfloat16 to cuda softmax gather_for_metrics".split()
)
_PLACED: Final = frozenset({"tensor", "parameter", "list", "tuple", "dict", "unknown", "device"})
_WANTING: Final = frozenset({"fed", "backward", "called", "optimized", "copied"})


def stored(evaluator: Evaluator, frame: Frame) -> Iterator[Store]:
    """The stores that a function makes, itself or in what it calls with what may be a tensor."""
    return stores_in(evaluator, frame, lambda value: value.kind in ("tensor", "unknown"))


def holds_several(evaluator: Evaluator, store: Store, leaf: Any) -> bool:
    """Whether what is stored is what is in a list, each by itself."""
    several = store.elements and leaf is store.value
    return several and evaluator.value_of(leaf, store.frame).kind in ("list", "tuple")


# -- what it is


def operations(evaluator: Evaluator, node: Any, frame: Frame) -> list[tuple[Any, Frame]]:
    """The operations that have made a value, the last first, each of what the next has given; the last of them is a forward, or what
    is given or not seen. Where it may be made in several ways, that of the first."""
    found = [(node, frame)]
    while len(found) < _MOST:
        node, frame = found[-1]
        if isinstance(node, ast.Call) and forward_of(evaluator, node, frame) is not None:
            break
        given = next(sources(evaluator, node, frame), None)
        operand = _operand(evaluator, node, frame) if given is None else None
        if given is None and operand is None:
            break
        found.append(given or (operand, frame))
    return found


def _operand(evaluator: Evaluator, node: Any, frame: Frame) -> Any:
    if isinstance(node, ast.Call):
        base = node.func.value if isinstance(node.func, ast.Attribute) else None
        kind = evaluator.value_of(base, frame).kind if base is not None else "library"
        return base if kind in ("tensor", "unknown", "tuple", "dict") else next(iter(node.args), None)
    if isinstance(node, ast.BinOp):
        return node.left if evaluator.value_of(node.left, frame).kind == "tensor" else node.right
    return getattr(node, "value", None) if isinstance(node, (ast.Attribute, ast.Subscript)) else None


def is_of_output(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether an expression is what a network gives, or a part of it."""
    *parts, (last, where) = operations(evaluator, node, frame)
    plain = all(isinstance(one, (ast.Name, ast.Attribute, ast.Subscript)) for one, _ in parts)
    return plain and isinstance(last, ast.Call) and forward_of(evaluator, last, where) is not None


def is_number_each(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether a tensor has a number for each sample, or a few: a column of rows of scores, or what is left of them when they are reduced."""
    steps = operations(evaluator, node, frame)
    for at, (one, _) in enumerate(steps):
        name = last_name(one.func) if isinstance(one, ast.Call) else ""
        row = evaluator.table.own("tensor", name)
        dims = argument(one, 0, "dim") if name else None
        index = one.slice.elts if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Tuple) else []
        column = len(index) == 2 and not isinstance(index[1], ast.Slice)
        reduces = row is not None and (row.size == "scalar" or row.gives == "pair or one")
        if name in _IDS or (reduces and isinstance(dims, (ast.Tuple, ast.List))):
            return True
        if reduces or column:
            return not any(_is_more(evaluator, *inner) for inner in steps[at + 1 :])
    return False


def _is_more(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether what an expression gives may be more than a row for each sample: a part of what a network gives, or along a new dimension."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and is_of_output(evaluator, node.value, frame)
    if isinstance(node, ast.Attribute):
        return evaluator.table.own("tensor.attributes", node.attr) is None
    around = ast.walk(node) if isinstance(node, ast.BinOp) else ()
    return any(isinstance(one, ast.Subscript) and "None" in ast.unparse(one.slice) for one in around)


def is_dense(evaluator: Evaluator, node: Any, frame: Frame, depth: int = 4) -> bool:
    """Whether a tensor is known to have values for each token, or for each pixel: nothing reduces what such a network gives."""
    for one, where in operations(evaluator, node, frame):
        run = forward_of(evaluator, one, where) if isinstance(one, ast.Call) else None
        if run is not None:
            return depth > 0 and gives_dense(evaluator, run.network, depth - 1)
        if isinstance(one, ast.Attribute) and evaluator.table.own("module.outputs", one.attr) is not None:
            return bool(behind(evaluator, one.value, where))
        part = isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant)
        same = isinstance(one, ast.Call) and last_name(one.func) in _SAME
        if not (part or same or isinstance(one, ast.Name) or getattr(one, "attr", "") == "logits"):
            return False
    return False


def gives_dense(evaluator: Evaluator, network: Value, depth: int = 4, many: bool = False) -> bool:
    """Whether a network is of a class that gives so much, or `many` values for each, or one whose forward ends with a layer that does."""
    method = evaluator.method(network.ref, "forward")
    if method is not None:
        given = [one.value for one in method.flow.returns if one.value is not None]
        return bool(given) and all(is_dense(evaluator, one, evaluator.root(method), depth) for one in given)
    rows, made = evaluator.table.knows("module.dense"), []
    known = [part for part, row in rows.items() if not (many and row.size == "few")]
    for call, where in network.calls:
        layers = call.args if last_name(call.func) == "Sequential" else ()
        last = evaluator.value_of(layers[-1], where) if layers else None
        if last is not None:
            made.append(depth > 0 and last.kind == "module" and gives_dense(evaluator, last, depth - 1))
        else:
            full = str(evaluator.value_of(call.func, where).ref)
            made.append(any(part in full for part in known))
    return bool(made) and all(made)


def is_move(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether an expression brings something to a device, or makes it there."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in ("to", "cuda"):
            return node.func.attr == "cuda" or evaluator.calling.device(node, frame) in ("cuda", "?")
        if evaluator.value_of(node.func.value, frame).kind == "accelerator":
            return True
    where = keyword(node, "device")
    return where is not None and evaluator.calling.device_of(where, frame) != "host"


def devices(evaluator: Evaluator, node: Any, frame: Frame) -> Iterator[Device]:
    """The devices that a tensor, or those in a list, may be on: in the function by itself, or else by what calls it."""
    for where in (frame, *entered(evaluator, frame)):
        device = remembered(where.memo, ("device", node), "?", lambda: _device(evaluator, node, where))  # noqa: B023
        yield device
        if device != "?" and where is frame:
            return


def _device(evaluator: Evaluator, node: Any, frame: Frame) -> Device:
    """Where a tensor is by what it is made of: where that is or, of what a network gives, where the network is. No operation takes tensors
    of a GPU and of the host, so one of them says it."""
    queue, found = [(node, frame)], "?"
    for one, where in queue:  # grows while it is gone through
        value = evaluator.value_of(one, where)
        run = forward_of(evaluator, one, where) if isinstance(one, ast.Call) else None
        device, network = each_of(evaluator, value).device, None
        if device == "?" and (run is not None or value.kind == "parameter"):
            network = placed(evaluator, *((one, where) if run is None else (run.expression, run.frame)))
            device = network.device
        if device == "cuda":
            return "cuda"
        found = device if device == "host" and value.kind != "unknown" else found  # a size is no tensor
        if device == "?" or (network is not None and network.how == "made"):  # what it is given may say more
            new = dict.fromkeys(
                [*_operands(evaluator, one, where, run is not None), *put_into(evaluator, value)]
            )
            known = [each for each in new if each not in queue and evaluator.value_of(*each).kind in _PLACED]
            queue += known[: _MOST - len(queue)]
    return found  # type: ignore[return-value]


def _operands(evaluator: Evaluator, node: Any, frame: Frame, runs: bool) -> list[tuple[Any, Frame]]:
    """What says where an expression is: what its name is bound to, what it is worked out of, the device that it is moved to."""
    found = list(sources(evaluator, node, frame))
    if found or isinstance(node, ast.Name):
        is_there = any(evaluator.value_of(*one).device == "host" for one in found[1:])  # on one of the ways
        return found if not is_there else []
    if not isinstance(node, ast.Call):
        part = getattr(node, "value", None) or getattr(node, "elt", None)
        several = [part] if part is not None else ast.iter_child_nodes(node)
        return [(one, frame) for one in several if isinstance(one, ast.expr)]
    base, given = getattr(node.func, "value", None), arguments(node)
    row = evaluator.row_of(node, frame)
    if row is None and not runs:
        row, given = evaluator.table.own("tensor", last_name(node.func)), [base, *given]
    named = keyword(node, "device")
    if row is not None and row.device == "argument":
        named = named or next(iter(node.args), None)
    if named is not None:
        given = [named]
    return [(one, frame) for one in given if one is not None] if runs or row is not None else []


def each_of(evaluator: Evaluator, value: Value) -> Value:
    """What is in a list, and in the lists in it; else the value."""
    inner = evaluator.element(value) if value.kind == "list" else value
    return evaluator.element(inner) if inner.kind == "list" else inner


# -- what becomes of it


def ends(evaluator: Evaluator, store: Store, leaf: Any) -> dict[str, Use]:
    """What is done with all that has been stored, joined or one by one, each with the first use that does it: it goes to the `host`, or is
    saved; becomes an `array` without that, so it was there; is read as whole numbers (`ids`); is `wanted` on the device, by a network or
    together with other tensors; goes where nobody sees it; or only `numbers` of it are read."""
    found: dict[str, Use] = {}
    queue, seen = [(leaf, store.frame)], {leaf}
    several = holds_several(evaluator, store, leaf)
    for node, where in queue:  # grows while it is gone through
        for use in consumers(evaluator, node, where, "storage", (ANY,) if several and node is leaf else ()):
            if isinstance(use.frame.flow.parents.get(use.node), ast.AugAssign):
                continue  # there it is stored
            end = _end(evaluator, use, node is leaf or _joins(node), seen)
            item = node is leaf and use.role == "returned" and use.path and ANY not in use.path
            end = "wanted" if item and store.way == "put" else end
            if isinstance(end, str):
                found.setdefault(end, use)
            elif end is not None and end not in seen and len(queue) < _MOST:
                seen.add(end)
                queue.append((end, use.frame))
    return found


def is_joined(evaluator: Evaluator, store: Store, leaf: Any) -> bool:
    """Whether torch joins what is stored: it is tensors then."""
    uses = consumers(evaluator, leaf, store.frame, "storage")
    return any(one.role == "computed" and _joins(one.node) for one in uses)


def is_never_read(evaluator: Evaluator, store: Store, leaf: Any) -> bool:
    """Whether nothing is done with what is stored but to store it."""
    return all(one.role == "stored" for one in consumers(evaluator, leaf, store.frame, "storage"))


def is_only_last_read(evaluator: Evaluator, store: Store) -> bool:
    """Whether of all that a function puts into a list of its own only the last is read, itself or once they are joined, or their number."""
    function, key, flow = store.frame.function, key_of(store.container) or "", store.frame.flow
    if any(key in one.words for one in function.file.functions if one.parent is function):
        return False
    reads = [one for one in flow.uses.get(key, ()) if one is not store.container]
    return bool(reads) and all(_is_last_or_number(evaluator, one, store.frame) for one in reads)


def _is_last_or_number(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    above = frame.flow.parents.get(node)
    if isinstance(above, ast.Call) and (_joins(above) or last_name(above.func) == "len"):
        return not _joins(above) or _is_last_or_number(evaluator, above, frame)
    if isinstance(above, ast.Attribute):  # another is put into it
        return above.attr == "append"
    index = above.slice if isinstance(above, ast.Subscript) and above.value is node else None
    return index is not None and evaluator.value_of(index, frame).const == -1


def _joins(node: Any) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in JOINING


def _end(evaluator: Evaluator, use: Use, whole: bool, seen: set[Any]) -> Any:
    """What a use is; the operation whose result goes on, where one does."""
    node, frame = use.node, use.frame
    called = evaluator.value_of(node.func, frame) if isinstance(node, ast.Call) else None
    if use.role in _WANTING or (use.role == "given" and called is not None and called.kind == "module"):
        return "wanted"
    if use.name in ("tolist", "long", "int") and whole:
        return "ids"
    if use.role == "saved" or use.name == "tolist":
        return "host"
    if use.role in ("reads", "given") and (use.name == "numpy" or use.name.startswith("numpy.")):
        base = node.func.value if use.name == "numpy" and isinstance(node.func, ast.Attribute) else None
        return "host" if base is not None and evaluator.value_of(base, frame).device == "host" else "array"
    in_object = use.role == "stored" and isinstance(use.owner, Class)
    if in_object or use.role in ("returned", "too much", "given"):
        return "unseen"
    if use.role == "method" and evaluator.value_of(node, frame).device == "host":
        return "host"
    if use.role == "computed":
        return _computed(evaluator, use, seen)
    return "numbers" if use.role == "reads" else None


def _computed(evaluator: Evaluator, use: Use, seen: set[Any]) -> Any:
    """Where an operation goes on: not with tensors that all of it is not in."""
    node, frame = use.node, use.frame
    above: Any = node if use.row is not None else frame.flow.parents.get(node)
    if isinstance(above, ast.Call):
        given = [above.func.value if isinstance(above.func, ast.Attribute) else above.func, *above.args]
        if evaluator.value_of(above, frame).device == "host":
            return "host"
    else:
        given = [above.left, above.right] if isinstance(above, ast.BinOp) else []
    for one in given if not _joins(above) else ():
        value = evaluator.value_of(one, frame)
        if value.kind in ("tensor", "parameter") or value.device == "cuda":
            if not any(part in seen for part, _ in made_of(evaluator, one, frame, numbers=False)):
                return "wanted"
    return above if isinstance(above, (ast.Call, ast.BinOp, ast.UnaryOp)) else None

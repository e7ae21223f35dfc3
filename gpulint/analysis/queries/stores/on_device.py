"""What is stored again and again while it stays on a device: what is put where, in which rounds, and what becomes of all of it together."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.consumers import ANY, Use, consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.networks.behind import behind, made_of, source_of
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.stores.stores import Owner, Store, called, keeps, leaves, own_stores
from gpulint.analysis.syntax.nodes import argument, last_name

_DEEPEST: Final = 3  # calls that are gone into
_MOST: Final = 40  # operations on all of it together
JOINING: Final = frozenset("cat stack concat concatenate hstack vstack dstack row_stack".split())
_SAME: Final = frozenset("clone contiguous detach float double half bfloat16 to cuda squeeze unsqueeze view reshape flatten permute "
                         "transpose t type gather gather_for_metrics all_gather exp log sqrt abs neg softmax sigmoid log_softmax clamp".split())  # fmt: skip


def stored(evaluator: Evaluator, function: Function) -> Iterator[Store]:
    """The stores that a function makes of what may be a tensor, itself or in what it calls with one."""
    yield from _stored_in(evaluator, evaluator.root(function), _DEEPEST)


def _stored_in(evaluator: Evaluator, frame: Frame, depth: int) -> Iterator[Store]:
    yield from (one for one in own_stores(evaluator, frame) if not evaluator.is_dead(one.at, frame))
    for call in frame.flow.every_call if depth else ():
        given = [*call.args, *(one.value for one in call.keywords)]
        target, receiver = called(evaluator, call, frame) if given else (None, None)
        if target is None or not keeps(evaluator, target, _DEEPEST) or evaluator.is_dead(call, frame):
            continue
        if any(evaluator.value_of(one, frame).kind in ("tensor", "unknown") for one in given):
            inner = evaluator.enter(target, call, frame, receiver)
            if inner is not None:
                yield from _stored_in(evaluator, inner, depth - 1)


def parts_of(evaluator: Evaluator, store: Store) -> Iterator[Any]:
    """The expressions of what is stored, each by itself: those in a display, and what an object of a class is made of."""
    for leaf in leaves(store):
        made = isinstance(leaf, ast.Call) and evaluator.value_of(leaf.func, store.frame).kind == "class"
        if made and evaluator.value_of(leaf, store.frame).kind == "object":
            yield from (*leaf.args, *(one.value for one in leaf.keywords))
        else:
            yield leaf


def is_buffer(evaluator: Evaluator, store: Store) -> bool:
    """Whether a value is written into its own rows of a tensor that is on a device: `rows[i : i + n] = out`."""
    container = evaluator.value_of(store.container, store.frame)
    target = getattr(store.at, "targets", [None])[0]
    return container.kind == "tensor" and container.device != "host" and isinstance(target, ast.Subscript)


def holds_several(evaluator: Evaluator, store: Store, leaf: Any) -> bool:
    """Whether what is stored is what is in a list, each by itself."""
    return (
        store.elements
        and leaf is store.value
        and evaluator.value_of(leaf, store.frame).kind in ("list", "tuple")
    )


# -- in which rounds


Input = Literal["element", "slice", "fixed", "made"]


def input_of(evaluator: Evaluator, node: Any, loop: Any, frame: Frame, depth: int = 10) -> Input:
    """What each round of a loop makes a value of: the `element` that it is about, a `slice` of one tensor, what is `fixed` for all rounds,
    or what is `made` in the round from something else."""
    flow = frame.flow
    if not depth or isinstance(node, ast.Constant):
        return "made"
    if isinstance(node, (ast.Tuple, ast.List)):
        found = [input_of(evaluator, one, loop, frame, depth - 1) for one in node.elts]
        return next((one for one in found if one != "fixed"), "fixed")
    if isinstance(node, ast.Call):
        return _input_of_call(evaluator, node, loop, frame, depth - 1)
    if isinstance(node, ast.Subscript):
        base = input_of(evaluator, node.value, loop, frame, depth - 1)
        if base == "fixed" and any(isinstance(one, ast.Slice) for one in ast.walk(node.slice)):
            return "slice" if isinstance(node.slice, ast.Slice) else "fixed"  # windows of one picture
        return input_of(evaluator, node.slice, loop, frame, depth - 1) if base == "fixed" else base
    if isinstance(node, ast.BinOp):
        found = [input_of(evaluator, one, loop, frame, depth - 1) for one in (node.left, node.right)]
        return next((one for one in found if one != "fixed"), "fixed")
    if isinstance(node, (ast.Attribute, ast.Starred)) and not (node in flow.parents and _bound(node, flow)):
        return input_of(evaluator, node.value, loop, frame, depth - 1)
    if not isinstance(node, (ast.Name, ast.Attribute)) or node not in flow.parents:
        return "made"
    inside = [
        one
        for one in _bound(node, flow)
        if one.statement in flow.blocks and loop in flow.loops(one.statement)
    ]
    if any(one.kind == "loop" for one in flow.reaching(node)):
        return "element"
    found = [input_of(evaluator, one.value, loop, frame, depth - 1) for one in inside if one.kind == "assign"]
    return next((one for one in found if one != "fixed"), "made" if inside and not found else "fixed")


def _bound(node: Any, flow: Any) -> list[Any]:
    return [one for one in flow.reaching(node) if one.kind not in ("entry", "parameter")]


def _input_of_call(evaluator: Evaluator, call: ast.Call, loop: Any, frame: Frame, depth: int) -> Input:
    func = call.func
    base = func.value if isinstance(func, ast.Attribute) else None
    of_value = base is not None and evaluator.value_of(base, frame).kind not in (
        "library",
        "module",
        "object",
        "class",
    )
    found: Input = input_of(evaluator, base, loop, frame, depth) if of_value else "fixed"
    given = [*call.args[:1], *(one.value for one in call.keywords)]
    for one in given if found == "fixed" else ():
        found = input_of(evaluator, one, loop, frame, depth)
        if found != "fixed":
            break
    moves = (
        evaluator.calling.device(call, frame) is not None
        if isinstance(func, ast.Attribute) and func.attr == "to"
        else False
    )
    if found == "slice" and (moves or last_name(func) == "cuda"):
        return "element"  # the round itself brings it there
    if found == "slice" and not of_value and forward_of(evaluator, call, frame) is None:
        return "element"  # texts go through a tokenizer
    row = evaluator.row_of(call, frame)
    fresh = row is not None and row.gives == "fresh"
    of_tensor = of_value and evaluator.table.own("tensor", last_name(func)) is not None
    return "made" if found == "fixed" and (fresh or not (given or of_tensor)) else found


def _is_tensor(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    return evaluator.value_of(node, frame).kind in ("tensor", "parameter")


# -- what becomes of it


@dataclass(slots=True)
class Ends:
    """What is done with all that has been stored: it goes to the `host`, joined or one by one; becomes an `array` without that, so it was
    there; is `saved`; is `wanted` on the device, together with other tensors or by a network; is looked at one by one (`each`); is read as
    whole numbers (`ids`); or goes where nobody sees it."""

    host: list[Use] = field(default_factory=list)
    array: list[Use] = field(default_factory=list)
    saved: list[Use] = field(default_factory=list)
    wanted: list[Use] = field(default_factory=list)
    each: list[Use] = field(default_factory=list)
    ids: list[Use] = field(default_factory=list)
    unseen: list[Use] = field(default_factory=list)
    reads: list[Use] = field(default_factory=list)


def ends(evaluator: Evaluator, store: Store, leaf: Any, owner: Owner) -> Ends:
    """The uses of what is taken out of the place that a value has been stored in, and of what is made of all of it."""
    found = Ends()
    queue, seen = [(leaf, store.frame)], {leaf}
    path = (ANY,) if holds_several(evaluator, store, leaf) else ()
    for node, where in queue:
        for use in consumers(evaluator, node, where, "storage", path if node is leaf else ()):
            if (
                node is leaf
                and use.role == "returned"
                and use.path
                and ANY not in use.path
                and store.way == "put"
            ):
                found.wanted.append(use)  # one of them
                continue
            if use.name in ("tolist", "long", "int") and (node is leaf or _joins(node)):
                found.ids.append(use)
            onward = _ended(evaluator, use, found, owner, seen)
            if onward is not None and onward not in seen and len(queue) < _MOST:
                seen.add(onward)
                queue.append((onward, use.frame))
    return found


def _joins(node: Any) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in JOINING


def _ended(evaluator: Evaluator, use: Use, found: Ends, owner: Owner, seen: set[Any]) -> Any:
    """Note what a use is; the operation whose result goes on, where one does."""
    node, frame = use.node, use.frame
    if use.role == "stored" and isinstance(use.owner, Class):
        found.unseen.append(use)
    elif use.role in ("fed", "backward", "called", "optimized", "copied"):
        found.wanted.append(use)
    elif use.role == "saved":
        found.saved.append(use)
    elif use.role in ("returned", "too much"):
        found.unseen.append(use)
    elif use.role in ("reads", "given"):
        _noted(evaluator, use, found, owner)
    elif use.role == "method" and evaluator.value_of(node, frame).device == "host":
        found.host.append(use)
    elif use.role == "computed":
        return _computed(evaluator, use, found, seen)
    return None


def _noted(evaluator: Evaluator, use: Use, found: Ends, owner: Owner) -> None:
    node, frame = use.node, use.frame
    full = use.name if "." in use.name else ""
    target = evaluator.value_of(node.func, frame) if isinstance(node, ast.Call) else None
    if use.name in ("numpy", "__array__") or full.startswith("numpy."):
        before = node.func if isinstance(node, ast.Call) else node
        is_host = (
            evaluator.value_of(before.value, frame).device == "host"
            if isinstance(before, ast.Attribute) and not full
            else False
        )
        (found.host if is_host else found.array).append(use)
    elif use.name == "tolist":
        found.host.append(use)
    elif use.role == "reads":
        found.reads.append(use)
    elif target is not None and (target.kind == "module" or is_unseen_output(evaluator, node, frame)):
        found.wanted.append(use)
    else:
        found.unseen.append(use)
    if target is not None and use.role == "given" and not use.path:
        if set(frame.flow.loops(node)) - {one.loop for one in owner.rounds}:
            found.each.append(use)


def _computed(evaluator: Evaluator, use: Use, found: Ends, seen: set[Any]) -> Any:
    node, frame = use.node, use.frame
    above = frame.flow.parents.get(node)
    if isinstance(above, ast.AugAssign):
        return None  # it is what is stored
    above = node if isinstance(node, ast.Call) else above
    if isinstance(above, ast.Call):
        name = last_name(above.func)
        base = above.func.value if isinstance(above.func, ast.Attribute) else None
        given = [one for one in (base, *above.args) if one is not None]
        if evaluator.value_of(above, frame).device == "host":
            found.host.append(use)
            return None
        if name in JOINING or not _others(evaluator, given, frame, seen):
            return above
    elif isinstance(above, (ast.BinOp, ast.UnaryOp)):
        if isinstance(above, ast.UnaryOp) or not _others(evaluator, [above.left, above.right], frame, seen):
            return above
    else:
        return None
    found.wanted.append(use)
    return None


def _others(evaluator: Evaluator, given: list[Any], frame: Frame, seen: set[Any]) -> bool:
    """Whether tensors are among the operands that all of it is not in."""
    for one in given:
        value = evaluator.value_of(one, frame)
        if value.kind in ("tensor", "parameter") or value.device == "cuda":
            if not any(node in seen for node, _ in made_of(evaluator, one, frame)):
                return True
    return False


# -- how much it is


def is_number_each(evaluator: Evaluator, node: Any, frame: Frame, depth: int = 10) -> bool:
    """Whether a tensor has a number for each sample, or a few: what is left of rows of scores that are reduced, or one of their columns."""
    again = lambda one, where=frame: is_number_each(evaluator, one, where, depth - 1)  # noqa: E731
    if not depth:
        return False
    if isinstance(node, ast.Name):
        made = list(frame.flow.reaching(node)) if node in frame.flow.parents else []
        given = [(frame.given or {}).get(one.key) for one in made if one.kind == "parameter"]
        given = [one for one in given if isinstance(one, tuple) and isinstance(one[0], ast.AST)]
        sources = [(one.value, frame) for one in made if one.kind == "assign" and not one.path] + given
        return bool(made) and len(sources) == len(made) and all(again(*one) for one in sources)
    if isinstance(node, ast.BinOp):
        return again(node.left) or (again(node.right) and not _is_tensor(evaluator, node.left, frame))
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        column = len(parts) == 2 and isinstance(parts[0], ast.Slice) and not isinstance(parts[1], ast.Slice)
        if column:
            return not _has_more_dims(evaluator, node.value, frame)
        return again(node.value) if isinstance(node.value, ast.Call) else False
    if isinstance(node, ast.Attribute):
        return again(node.value)
    if not isinstance(node, ast.Call) or forward_of(evaluator, node, frame) is not None:
        return False
    target = evaluator.value_of(node.func, frame)
    if target.kind == "function" and isinstance(target.ref, Function):
        inner = evaluator.enter(target.ref, node, frame, target.receiver)
        given_back = [one.value for one in target.ref.flow.returns if one.value is not None]
        return inner is not None and bool(given_back) and all(again(one, inner) for one in given_back)
    name = last_name(node.func)
    is_method = isinstance(node.func, ast.Attribute) and target.kind != "library"
    operand = (
        node.func.value
        if is_method and _is_tensor(evaluator, node.func.value, frame)
        else next(iter(node.args), None)
    )
    row = evaluator.table.own("tensor", name)
    if operand is None:
        return False
    if name in ("argmax", "argmin", "multinomial"):
        return True
    dims = argument(node, 0 if operand is not next(iter(node.args), None) else 1, "dim")
    if row is not None and (row.size == "scalar" or row.gives == "pair or one"):
        several = isinstance(dims, (ast.Tuple, ast.List, ast.Call))  # all but that of the samples
        return several or not _has_more_dims(evaluator, operand, frame)
    return again(operand) if name in _SAME else False


def _has_more_dims(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether what is reduced may be more than a row for each sample: a part of what a network gives, or broadcast along a new dimension."""
    for one, where in made_of(evaluator, node, frame):
        if isinstance(one, ast.Call) and last_name(one.func) in ("unsqueeze", "expand", "permute"):
            return True
        if isinstance(one, ast.Subscript) and any(
            isinstance(e, ast.Constant) and e.value is None for e in ast.walk(one.slice)
        ):
            return True
        part = (isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant)) or (
            isinstance(one, ast.Attribute)
            and evaluator.table.own("tensor.attributes", one.attr) is None
            and getattr(where.flow.parents.get(one), "func", None) is not one
        )
        if part and _is_tensor(evaluator, one.value, where) and behind(evaluator, one.value, where):
            return True
    return False


def is_of_output(evaluator: Evaluator, node: Any, frame: Frame, depth: int = 8) -> bool:
    """Whether an expression is a part of what a network gives, or of what is not seen and is given something of a device without grad."""
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not _bound(node, frame.flow):
        return depth > 0 and is_of_output(evaluator, node.value, frame, depth - 1)
    if isinstance(node, ast.Call):
        return forward_of(evaluator, node, frame) is not None or is_unseen_output(evaluator, node, frame)
    made = [source_of(one) for one in _bound(node, frame.flow)] if node in frame.flow.parents else []
    return (
        depth > 0
        and bool(made)
        and all(one is not None and is_of_output(evaluator, one, frame, depth - 1) for one in made)
    )


def is_unseen_output(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether a call of what is not seen is given something of a device where grad is switched off: perhaps a network."""
    if not isinstance(node, ast.Call) or evaluator.value_of(node.func, frame).kind != "unknown":
        return False
    given = [(one, evaluator.value_of(one, frame)) for one in node.args]
    moved = any(
        value.kind in ("tensor", "unknown") and (value.device == "cuda" or is_move(evaluator, one, frame))
        for one, value in given
    )
    return moved and evaluator.grad_is_off(node, frame)


def is_move(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether an expression brings something to a device, or makes it there."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
        return node.func.attr == "cuda" or evaluator.calling.device(node, frame) in ("cuda", "?")
    if (
        isinstance(node.func, ast.Attribute)
        and evaluator.value_of(node.func.value, frame).kind == "accelerator"
    ):
        return True
    return any(
        one.arg == "device" and evaluator.calling.device_of(one.value, frame) != "host"
        for one in node.keywords
    )


def is_view(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether a name stands for what a loop takes out of a tensor, one after the other: each of them keeps all of it."""
    for one in _bound_or_given(node, frame):
        if isinstance(one, tuple):
            if is_view(evaluator, *one):
                return True
        elif (
            one.kind == "loop"
            and (source := source_of(one)) is not None
            and _is_tensor(evaluator, source, frame)
        ):
            return True
    return False


def _bound_or_given(node: Any, frame: Frame) -> Iterator[Any]:
    for one in frame.flow.reaching(node) if isinstance(node, ast.Name) and node in frame.flow.parents else ():
        given = (frame.given or {}).get(one.key) if one.kind == "parameter" else None
        if isinstance(given, tuple) and isinstance(given[0], ast.AST):
            yield given
        elif one.kind != "parameter":
            yield one


def is_dense(evaluator: Evaluator, node: Any, frame: Frame, depth: int = 12) -> bool:
    """Whether a tensor is known to have values for each token, or for each pixel: nothing reduces what the network gives."""
    again = lambda one, where=frame: is_dense(evaluator, one, where, depth - 1)  # noqa: E731
    if not depth:
        return False
    if isinstance(node, ast.Attribute):
        if evaluator.table.own("module.outputs", node.attr) is not None:
            return bool(behind(evaluator, node.value, frame))
        return (
            again(node.value)
            if not _bound(node, frame.flow) and node.attr in ("logits", "T", "mT", "data")
            else False
        )
    if isinstance(node, ast.Subscript) and not (node in frame.flow.parents and _bound(node, frame.flow)):
        return isinstance(node.slice, (ast.Constant, ast.Slice)) and again(node.value)
    if isinstance(node, ast.Call):
        run = forward_of(evaluator, node, frame)
        if run is not None:
            return _maps(evaluator, run.network)
        base = node.func.value if isinstance(node.func, ast.Attribute) else None
        of_value = base is not None and evaluator.value_of(base, frame).kind in ("tensor", "unknown")
        operand = base if of_value and last_name(node.func) in _SAME else next(iter(node.args), None)
        return operand is not None and last_name(node.func) in _SAME and again(operand)
    made = [source_of(one) for one in _bound(node, frame.flow)] if node in frame.flow.parents else []
    return bool(made) and all(one is not None and again(one) for one in made)


def _maps(evaluator: Evaluator, network: Value) -> bool:
    """Whether a network of a library gives values for each token or pixel, by the class that it is made of."""
    known = evaluator.table.knows("module.dense")
    for node, where in network.origins:
        made = (
            evaluator.value_of(node.func, where).ref
            if isinstance(node, ast.Call) and where is not None
            else None
        )
        if not isinstance(made, str) or not any(one in made for one in known):
            return False
    return bool(network.origins)

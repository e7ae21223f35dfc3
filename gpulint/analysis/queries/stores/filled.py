"""What a program fills by itself, zeros, counts, random numbers and what is worked out of them, without any data; and how large it is, as
far as the text says."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.evaluate.weights import weight
from gpulint.analysis.models.table import Row
from gpulint.analysis.queries.networks.behind import made_of, sources
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.stores.on_device import operations
from gpulint.analysis.syntax.flow import Definition
from gpulint.analysis.syntax.nodes import arguments, called_on, key_of, last_name

_DEEPEST: Final = 8
_LEAST_ALIKE: Final = ("draws", "draws evenly", "of sizes", "counts up", "alike")
_PLAIN: Final = frozenset({"number", "text", "none", "library", "device", "tuple"})

Place = tuple[Any, Frame]


@dataclass(frozen=True, slots=True)
class Filled:
    """With what numbers, as the table's column `fills` says; the call that begins it; the expressions that its shape is made of; and what
    tensors are put into it then."""

    how: str
    begun: ast.Call
    sizes: tuple[Place, ...]
    data: tuple[Place, ...] = ()


def filled(evaluator: Evaluator, node: Any, frame: Frame, depth: int = _DEEPEST) -> Filled | None:
    """How a program fills what an expression gives; None where it computes with data, or something puts into it what is not seen."""
    row = evaluator.row_of(node, frame) if isinstance(node, ast.Call) else None
    of_numbers = row is not None and row.fills == "of sizes" and not _is_of_sizes(evaluator, node, frame)
    if row is not None and row.fills and not of_numbers:
        return Filled(row.fills, node, tuple((one, frame) for one in _shape(node)))
    is_method = row is None and called_on(node) is not None
    method = evaluator.table.method("tensor", last_name(node.func)) if is_method else None
    parts = _parts(evaluator, node, frame, row, method) if depth > 0 else []
    bound = frame.flow.reaching(node) if parts and isinstance(node, ast.Name) else ()
    put = [_put_into(evaluator, one, node, frame) for one in bound]
    if None in put:
        return None
    several = [filled(evaluator, *one, depth - 1) for one in parts if not _is_plain(evaluator, *one)]
    found = [one for one in several if one is not None]
    if not found or len(found) < len(several):
        return None
    how = method.fills if method is not None else ""
    how = how or min((one.how for one in found), key=_LEAST_ALIKE.index)
    resizes = method is not None and method.size == "more"
    more = node.args if resizes else [node.slice] if isinstance(node, ast.Subscript) else []
    shapes = dict.fromkeys(one.sizes for one in found)  # each once: `x.sign() * x.abs()` is as large as `x`
    sizes = [*(place for shape in shapes for place in shape), *((one, frame) for one in more)]
    data = [*(each for one in put for each in one or ()), *(each for one in found for each in one.data)]
    places = node.args[:-1] if method is not None and method.does == "fills places" else ()
    data += [
        (one, frame)
        for one in places
        if not (_is_plain(evaluator, one, frame) or filled(evaluator, one, frame))
    ]
    return Filled(how, found[0].begun, tuple(sizes), tuple(data))


def _parts(evaluator: Evaluator, node: Any, frame: Frame, row: Row | None, method: Row | None) -> list[Place]:
    """What decides what numbers are in what an expression gives."""
    if isinstance(node, ast.Name):
        made = frame.flow.reaching(node)
        is_plain = all(one.kind in ("assign", "inplace") and not one.path for one in made)
        return [(one.value, frame) for one in made if is_plain]
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Subscript)):
        operands = (getattr(node, name, None) for name in ("left", "right", "operand", "value"))
        return [(one, frame) for one in operands if one is not None]
    given = list(sources(evaluator, node, frame)) if isinstance(node, ast.Call) else []
    if given or (row or method) is None:
        return given if len(given) == 1 else []
    several = node.args[-1:] if method is not None and method.does == "fills places" else arguments(node)
    if method is not None:
        resizes = method.view or method.size == "more"
        says = resizes or method.fills or method.device == "argument"  # where it is, or how large
        several = [called_on(node), *([] if says else several)]
    known = (row or method).gives in ("fresh", "tensor", "array", "argument")  # type: ignore[union-attr]
    return [(one, frame) for one in several if known]


def _is_plain(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether an expression is a number, or says of which type or size something is to be."""
    value = evaluator.value_of(node, frame)
    return value.kind in _PLAIN or (value.size == "scalar" and value.kind == "unknown")


def _is_of_sizes(evaluator: Evaluator, call: ast.Call, frame: Frame) -> bool:
    """Whether `torch.FloatTensor` and its like are given sizes, and no numbers."""
    return len(call.args) > 1 or any(evaluator.value_of(one, frame).kind == "number" for one in call.args)


def _shape(call: ast.Call) -> list[Any]:
    """The expressions that say how large what a call makes is: `eye(n)` has n rows of n, `uniform(low, high, n)` n numbers."""
    name = last_name(call.func)
    given = call.args[:1] if name == "full" else call.args[:2][-1:] if name == "arange" else list(call.args)
    given = call.args[2:3] if name in ("uniform", "normal", "linspace") else given
    given *= 2 if name == "eye" and len(given) == 1 else 1
    given += [one.value for one in call.keywords if one.arg in ("size", "shape")]
    return [part for one in given for part in getattr(one, "elts", (one,))]


def _put_into(evaluator: Evaluator, made: Definition, until: Any, frame: Frame) -> list[Place] | None:
    """What is put into what a name is given, beside numbers, before a use of it; None where something may do so that is not seen."""
    flow, found = frame.flow, list[Place]()
    uses = [*flow.uses_of(made)]
    for use in uses:  # grows while it is gone through
        place, above = use, flow.parents.get(use)
        while isinstance(above, (ast.Attribute, ast.Subscript)) and above.value is place:
            place, above = above, flow.parents.get(above)
        uses += [one for one in flow.named(place) if one not in uses]
        call = flow.parents.get(above) if isinstance(above, ast.keyword) else above
        given = [one.value for one in flow.stores if one.target is place]
        if use.lineno >= until.lineno:
            continue
        if isinstance(call, ast.Call) and call.func is not place:
            if not _only_reads(evaluator, call, frame):
                return None
        elif isinstance(call, ast.Call) and last_name(place)[-1:] == "_":
            anew = place.value is use and use.id == made.key  # `x.fill_(1)`: that is looked at by itself
            given += arguments(call) if not anew else ()
        found += [(one, frame) for one in given if not _is_plain(evaluator, one, frame)]
    return found


def _only_reads(evaluator: Evaluator, call: ast.Call, frame: Frame) -> bool:
    """Whether what is called is known, and writes nothing into what it is given: a network, or a function of a library that the table has."""
    called = evaluator.value_of(call.func, frame)
    is_own = isinstance(called.ref, str) and "." not in called.ref
    is_known = is_own or evaluator.row_of(call, frame) is not None
    return called.kind == "module" or (called.kind == "library" and is_known)


def extent(evaluator: Evaluator, places: Iterable[Place]) -> tuple[int, int, int]:
    """How large something is by the expressions of its shape: the product of those that are known, from how many sizes of other tensors it is
    made, and how many more it has. A whole shape counts as two and more, or three where it is that of pictures or sequences on their way
    through a network. So does a tensor that is an index."""
    known, sizes, more = 1, dict[str, int](), 0
    queue = list(places)
    for node, frame in queue:  # grows by what is in a shape that has a name
        value = evaluator.value_of(node, frame)
        named = [one for one in value.origins if isinstance(one[0], ast.List)] if value.kind == "list" else []
        queue += [(one, where) for listed, where in named for one in listed.elts]
        whole = _whole(node, frame)
        if named:
            continue
        more += ast.unparse(node) in sizes
        if isinstance(value.const, int):
            known *= value.const
            continue
        if whole is not None:
            sizes[ast.unparse(node)] = 2 + _is_within_network(evaluator, whole, frame)
            more += 1
        elif value.kind == "tensor" or (value.device == "host" and value.size != "scalar"):
            is_index = isinstance(frame.flow.parents.get(node), ast.Subscript)
            sizes[ast.unparse(node)] = 1 + is_index
            more += is_index
        elif any(_is_size(one) for one, _ in made_of(evaluator, node, frame)):
            sizes[ast.unparse(node)] = 1
        else:
            more += 1
    return known, sum(sizes.values()), more


def _is_size(node: Any) -> bool:
    """`x.shape`, `x.size(0)`, `len(x)`."""
    is_length = isinstance(node, ast.Call) and key_of(node.func) == "len"
    return is_length or getattr(node, "attr", "") in ("shape", "size")


def _whole(node: Any, frame: Frame) -> Any:
    """The tensor whose whole shape it is: `x.shape`, `x.size()`, by itself or under a name."""
    node = frame.flow.unaliased(node.value if isinstance(node, ast.Starred) else node)
    node = node.func if isinstance(node, ast.Call) and not node.args else node
    return node.value if getattr(node, "attr", "") in ("shape", "size") else None


def _is_within_network(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether it is what a layer gives, within a network's forward, that sees pictures or sequences."""
    last, where = operations(evaluator, node, frame)[-1]
    run = forward_of(evaluator, last, where) if isinstance(last, ast.Call) else None
    is_forward = frame.function.cls is not None and frame.function.name == "forward"
    return run is not None and is_forward and bool(weight(evaluator, run.network).mixes)

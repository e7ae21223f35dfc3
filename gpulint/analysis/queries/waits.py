"""What a wait of the host for the device is needed for: a clock that is read in the same rounds, or work beside this stream."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.models.table import Row
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.calls import called, done_within
from gpulint.analysis.queries.multiplicity import Repeats
from gpulint.analysis.queries.networks.behind import rounds
from gpulint.analysis.queries.steps import Steps
from gpulint.analysis.queries.stores.on_device import each_of, operations
from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import arguments, called_on, key_of, keyword, last_name
from gpulint.answers import Answer, Question, left_open, refuted

_PARTS = (ast.Slice, ast.Tuple, ast.Constant)
_NEEDS: Final = {
    ("reads clock",): "a clock is read in the same rounds",
    ("runs beside", "several processes"): "work goes on beside it in the same rounds",
}


def waits(
    evaluator: Evaluator, steps: Steps, call: ast.Call, frame: Frame, repeats: Repeats
) -> Iterator[Answer]:
    """What speaks for it that a call that waits for the device is needed in each of its rounds."""
    for function, loop in _rounds(evaluator, steps, call, frame, repeats):
        for does, why in _NEEDS.items():
            at = done_within(evaluator, function, does, loop)
            if at is not None:
                yield refuted(Question.MEANT, why, at, function.file.path)
        root = evaluator.root(function)
        for one in function.flow.every_call:
            if (loop is None or loop in function.flow.loops(one)) and _copies_behind(evaluator, one, root):
                yield refuted(Question.MEANT, "a copy to the host goes on behind it", one, function.file.path)
    outermost = repeats.frame.function
    if repeats.loop is outermost.node:
        yield left_open(Question.MEANT, f"what calls `{outermost.name}` may read a clock after each step")


def _rounds(
    evaluator: Evaluator, steps: Steps, call: ast.Call, frame: Frame, repeats: Repeats
) -> Iterator[tuple[Function, Any]]:
    """The functions that run in each round, and what decorates them; of the one where the loop stands, with the loop, unless that does
    so many rounds of the same: a clock around such a loop, or its bar, measures its rounds."""
    for _, where in ((call, frame), *repeats.calls):
        function = where.function
        in_loop = where is repeats.frame and repeats.loop is not function.node
        inside = in_loop and steps.is_over_data(repeats.loop, function)
        yield function, repeats.loop if inside else None
        for node in () if in_loop else getattr(function.node, "decorator_list", ()):
            around = evaluator.value_of(node, evaluator.root(function.parent or function.file.body)).ref
            if isinstance(around, Function):
                yield from ((one, None) for one in around.file.functions if one.parent is around)


def _copies_behind(evaluator: Evaluator, call: ast.Call, frame: Frame) -> bool:
    """Whether a call copies to the host, and does not wait for that."""
    if not goes_on(evaluator, call, frame):
        return False
    return last_name(call.func) == "copy_" or evaluator.calling.device(call, frame) == "host"


def goes_on(evaluator: Evaluator, call: ast.Call, frame: Frame) -> bool:
    """Whether the host may go on while a call copies: with `non_blocking=True`."""
    later = keyword(call, "non_blocking")
    return later is not None and evaluator.value_of(later, frame).const is not False


def waits_for(row: Row) -> bool:
    """Whether what a row is of waits for the values of a tensor: for numbers, or for how many there are of a kind. What makes an array of it
    takes none that is on a GPU."""
    return (row.reads and row.gives != "array") or row.does.startswith("sized by values")


def read_by(evaluator: Evaluator, call: ast.Call, frame: Frame) -> ast.expr | None:
    """The tensor that a call reads on the host, which waits until the device has worked it out: `x.item()`, `float(x)`, `x.cpu()`, `torch.zeros(n)`."""
    if goes_on(evaluator, call, frame):
        return None
    row, on = evaluator.row_of(call, frame), called_on(call)
    first = 1 if row is not None and row.gives == "tensor" else 0  # `torch.reshape(x, …)`
    given: list[Any] = call.args if row is not None and waits_for(row) else []
    if row is not None and row.does.endswith("alone") and len(call.args) > 1:
        given = []
    if row is None and on is not None:
        is_text = evaluator.value_of(on, frame).kind == "text"
        row = evaluator.table.own("text" if is_text else "tensor", last_name(call.func))
        if row is not None and row.gives == "tensor" and row.device in ("host", "argument"):
            moved = evaluator.calling.device(call, frame) or row.device
            given = [on] if moved == "host" else []
        elif row is not None and waits_for(row):
            given = call.args if is_text else [on]
    for one in given:
        value = evaluator.value_of(one, frame)
        if value.kind in ("tensor", "parameter", "unknown") and value.device != "host":
            return one  # type: ignore[no-any-return]
    several = call.args[first:] if row is not None and row.numbers else []
    numbers = (part for one in several for part in getattr(one, "elts", [one]))
    return next((one for one in numbers if _is_there(evaluator, one, frame)), None)


def read_one_by_one(evaluator: Evaluator, frame: Frame) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls of a function that read one thing after the other of what they are given, with that, a tensor or a list of tensors:
    `map(int, x)`, `max(x)`, `torch.tensor(list_of_tensors)`."""
    known = [evaluator.table.knows(kind) for kind in ("builtins", "torch")]
    for name, calls in frame.flow.calls.items():
        if any(name in one and _may_read_each(one[name]) for one in known):
            for call in (one for one in calls if one.args):
                row = evaluator.row_of(call, frame)  # `torch.cuda.ByteTensor(xs)`
                if row is not None and _may_read_each(row) and _reads_each(evaluator, row, call, frame):
                    yield call, call.args[-1]


def _may_read_each(row: Row) -> bool:
    return row.gives in ("fresh", "mapped") or row.does == "asks each"


def _reads_each(evaluator: Evaluator, row: Row, call: ast.Call, frame: Frame) -> bool:
    first, given = call.args[0], call.args[-1]
    if row.gives == "mapped":
        function = evaluator.table.own("builtins", evaluator.value_of(first, frame).full_name)
        return function is not None and function.reads and _is_there(evaluator, given, frame)
    asks = row.does == "asks each" and first is given and keyword(call, "key") is None
    value = evaluator.value_of(given, frame)
    is_list = (asks or row.gives == "fresh") and value.kind == "list" and not isinstance(given, ast.List)
    several = is_list and each_of(evaluator, value).device == "cuda"
    return several or (asks and _is_there(evaluator, given, frame))


@dataclass(frozen=True, slots=True)
class Read:
    """Where (`at`) the host needs a number, or whether something holds, of what the device works out: `of`. `unless` says what is not shown,
    and would make it none."""

    at: ast.expr
    of: ast.expr
    unless: str = ""


def reads(
    evaluator: Evaluator, frame: Frame, is_wanted: Callable[[Any], Any], deep: bool = True
) -> Iterator[Read]:
    """What a function reads on the host at the nodes that are wanted: by calls, and where Python asks by itself for a number or for the truth."""
    flow = frame.flow
    known = [evaluator.table.knows(kind) for kind in ("tensor", "builtins", "torch", "text")]
    rows = {name: [one[name] for one in known if name in one] for name in flow.calls}
    asked = [name for name, several in rows.items() if any(map(_may_read, several))]
    found = [one for name in asked for one in flow.calls[name] if is_wanted(one)]
    for call in found:
        read, row = read_by(evaluator, call, frame), evaluator.table.own("builtins", key_of(call.func) or "")
        if read is not None:
            says = row is None or row.numbers
            yield Read(call, read, "" if says else _unless(evaluator, read, frame))
    for call in flow.every_call if deep else ():
        if call not in found and is_wanted(call):
            yield from _within(evaluator, call, frame)
    for node, above in flow.parents.items():
        asks = _ASKS.get(above.__class__)
        if asks is not None and asks(node, above, flow) and is_wanted(node):
            yield from _implicit(evaluator, node, above, frame)


def _may_read(row: Row) -> bool:
    return waits_for(row) or row.numbers or row.device in ("host", "argument")


def _within(evaluator: Evaluator, call: ast.Call, frame: Frame) -> Iterator[Read]:
    """What a function of the project reads in any case of what a call gives it."""
    given = [one for one in arguments(call) if _is_there(evaluator, one, frame)]
    function, receiver = called(evaluator, call, frame) if given else (None, None)
    inner = evaluator.enter(function, call, frame, receiver) if function is not None else None
    if inner is None:
        return
    at_once = lambda node: not (inner.flow.conditions(node) or rounds(evaluator, node, inner))  # noqa: E731
    for one in reads(evaluator, inner, at_once, deep=False):
        made = (node for node, where in operations(evaluator, one.of, inner) if where is frame)
        node = next((node for node in made if node in given), None)
        if node is not None:
            yield Read(call, node, one.unless)
            return


def _implicit(evaluator: Evaluator, node: Any, above: Any, frame: Frame) -> Iterator[Read]:
    sought = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn))
    read = node.left if sought else node
    if not _is_there(evaluator, read, frame):
        return
    above = frame.flow.parents[above] if isinstance(above, ast.Tuple) else above
    if isinstance(above, ast.Subscript):
        yield from _by_index(evaluator, node, above, frame)
    elif isinstance(above, ast.Slice):
        yield Read(node, read)
    elif not isinstance(above, ast.BinOp) or evaluator.value_of(above.left, frame).kind == "text":
        yield Read(node, read, _unless(evaluator, read, frame))


def _by_index(evaluator: Evaluator, node: Any, above: ast.Subscript, frame: Frame) -> Iterator[Read]:
    """What an index reads: a number of it picks an item of a list; as many places as it holds for are picked from a tensor."""
    base = evaluator.value_of(above.value, frame)
    of_tensor = base.kind == "tensor" or base.is_moved
    if is_mask(evaluator, node, frame):
        put = [one.value for one in frame.flow.stores if one.target is above]
        if of_tensor and all(evaluator.value_of(one, frame).kind == "tensor" for one in put):
            yield Read(above, node)
    elif base.kind in ("list", "text", "array"):
        yield Read(node, node)
    elif of_tensor or base.kind == "unknown":
        is_number = of_tensor and _is_number(evaluator, node, frame)
        item, of = ast.unparse(node), ast.unparse(above.value)
        what = f"`{item}` is one number" if of_tensor else f"`{of}` is a list"
        yield Read(node, node, "" if is_number else f"whether {what} is not shown")


def _is_there(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether an expression is a tensor that may be on a GPU."""
    value = evaluator.value_of(node, frame)
    return (value.kind == "tensor" and value.device != "host") or value.is_moved


def _unless(evaluator: Evaluator, node: Any, frame: Frame) -> str:
    """What is not shown of what is asked for, where anything may be asked for that."""
    is_moved = evaluator.value_of(node, frame).is_moved
    return f"whether `{ast.unparse(node)}` is a tensor is not shown" if is_moved else ""


def _is_number(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether a tensor is one number: what is worked out of all, or one of those that were laid out in a row."""
    if evaluator.value_of(node, frame).size == "scalar":
        return True
    picked = False
    for one, where in operations(evaluator, node, frame):
        if isinstance(one, ast.Name):
            picked = picked or any(each.kind == "loop" for each in where.flow.reaching(one))
        elif isinstance(one, ast.Subscript):
            picked = picked or evaluator.value_of(one.slice, where).kind == "number"
        elif picked and isinstance(one, ast.Call):
            row = evaluator.table.own("tensor", last_name(one.func))
            if row is not None and row.does == "lays out":
                return all(evaluator.value_of(each, where).const == -1 for each in one.args)
    return False


def is_mask(evaluator: Evaluator, node: Any, frame: Frame, depth: int = 4) -> bool:
    """Whether an expression says of each place of a tensor whether something holds there."""
    if not depth:
        return False
    if isinstance(node, ast.Compare):
        return evaluator.value_of(node, frame).kind == "tensor"
    if isinstance(node, ast.Call):
        row = evaluator.row_of(node, frame) or evaluator.table.own("tensor", last_name(node.func))
        return row is not None and row.does == "masks"
    parts = [getattr(node, name, None) for name in ("left", "right", "operand", "value")]
    if isinstance(node, ast.Name):
        bound = frame.flow.reaching(node)
        parts = [one.value if one.kind == "assign" and not one.path else None for one in bound]
    asked = [one is not None and is_mask(evaluator, one, frame, depth - 1) for one in parts]
    return all(asked) if isinstance(node, ast.Name) else any(asked)


def _is_index(node: Any, above: Any, flow: Flow) -> bool:
    """Whether a node is an index, or what is put into a text: by itself or beside others."""
    outer, whole = (flow.parents.get(above), above) if isinstance(above, ast.Tuple) else (above, node)
    is_put = isinstance(getattr(outer, "op", None), ast.Mod) and getattr(outer, "right", None) is whole
    return (is_put or getattr(outer, "slice", None) is whole) and not isinstance(node, _PARTS)


def _orders(node: Any, above: ast.Lambda, flow: Flow) -> bool:
    """Whether what a lambda gives is compared: it is the key of what is sorted."""
    return node is above.body and getattr(flow.parents.get(above), "arg", "") == "key"


_ASKS: Final[dict[type, Callable[[Any, Any, Flow], bool]]] = {
    **dict.fromkeys((ast.If, ast.While, ast.Assert, ast.IfExp), lambda node, above, flow: node is above.test),
    **dict.fromkeys((ast.BoolOp, ast.Slice, ast.FormattedValue), lambda node, above, flow: node is not getattr(above, "format_spec", None)),
    ast.comprehension: lambda node, above, flow: node in above.ifs,
    ast.UnaryOp: lambda node, above, flow: isinstance(above.op, ast.Not),
    **dict.fromkeys((ast.Subscript, ast.Tuple, ast.BinOp), _is_index), ast.Lambda: _orders,
}  # fmt: skip

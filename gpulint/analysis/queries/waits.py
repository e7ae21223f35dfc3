"""What a wait of the host for the device is needed for: a clock that is read in the same rounds, work beside this stream, or nothing, where
the host reads a value next and waits for that anyway."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.models.table import Row
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.calls import done_within
from gpulint.analysis.queries.multiplicity import Repeats
from gpulint.analysis.queries.networks.behind import rounds
from gpulint.analysis.queries.steps import Steps
from gpulint.analysis.syntax.nodes import keyword, last_name
from gpulint.answers import Answer, Question, left_open, refuted

_TESTS: Final = {ast.If, ast.While, ast.Assert, ast.IfExp, ast.comprehension}
_READERS: Final = _TESTS | {ast.BoolOp, ast.UnaryOp, ast.Slice, ast.Subscript}
_PARTS = (ast.Slice, ast.Tuple, ast.Constant)
_NEEDS: Final = {
    ("reads clock",): "a clock is read in the same rounds",
    ("runs beside", "several processes"): "work goes on beside it in the same rounds",
}


def waits(
    evaluator: Evaluator, steps: Steps, call: ast.Call, frame: Frame, repeats: Repeats
) -> Iterator[Answer]:
    """What speaks for it that a call that waits for the device is needed in each of its rounds."""
    read = _read_next(evaluator, call, frame)
    if read is not None:
        yield refuted(Question.MEANT, "the host reads a value right after, and waits for that anyway", read)
    for function, loop in _rounds(evaluator, steps, call, frame, repeats):
        for does, why in _NEEDS.items():
            at = done_within(evaluator, function, does, loop)
            if at is not None:
                yield refuted(Question.MEANT, why, at, function.file.path)
        root = evaluator.root(function)
        for one in function.flow.every_call:
            if (loop is None or loop in function.flow.loops(one)) and _copies_behind(evaluator, one, root):
                yield refuted(Question.MEANT, "a copy to the host goes on behind it", one, function.file.path)
    outermost = repeats.frame.function if repeats.frame is not None else frame.function
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


def _read_next(evaluator: Evaluator, call: ast.Call, frame: Frame) -> ast.Call | None:
    """What reads a value on the host before anything else is given to the device."""
    flow = frame.flow
    blocks = []
    for block in flow.around(call):
        blocks.append(block)
        if block.is_rounds:
            break
    ends = (call.end_lineno or 0, call.end_col_offset or 0)
    later = [one for one in flow.every_call if (one.lineno, one.col_offset) >= ends]
    later = [one for one in later if flow.blocks[flow.statement_of(one)] in blocks]
    for _, several in groupby(sorted(later, key=lambda one: (one.lineno, one.col_offset)), flow.statement_of):
        calls = list(several)
        for one in calls:
            if read_by(evaluator, one, frame) is not None:
                return one
        rows = [evaluator.row_of(one, frame) for one in calls]
        if not all(row is not None and row.gives in ("number", "none", "text") for row in rows):
            return None
    return None


def waits_for(row: Row) -> bool:
    """Whether what a row is of waits for the values of a tensor: for numbers, or for how many there are of a kind."""
    return row.reads or row.does == "sized by values"


def read_by(evaluator: Evaluator, call: ast.Call, frame: Frame) -> ast.expr | None:
    """The tensor that a call reads on the host, which waits until the device has worked it out: `x.item()`, `float(x)`, `x.cpu()`."""
    if goes_on(evaluator, call, frame):
        return None
    row = evaluator.row_of(call, frame)
    given: tuple[ast.expr, ...] = tuple(call.args) if row is not None and waits_for(row) else ()
    if row is None and isinstance(call.func, ast.Attribute):
        row = evaluator.table.own("tensor", call.func.attr)
        if row is not None and row.gives == "tensor" and row.device in ("host", "argument"):
            moved = evaluator.calling.device(call, frame) or row.device
            given = (call.func.value,) if moved == "host" else ()
        elif row is not None and waits_for(row):
            given = (call.func.value,)
    for one in given:
        value = evaluator.value_of(one, frame)
        if value.kind in ("tensor", "parameter", "unknown") and value.device != "host":
            return one
    return None


def read_implicitly(evaluator: Evaluator, frame: Frame) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What the rounds of a function read on the host without a call, and where: of a tensor that may be on a GPU whether it is true, or the number that
    bounds a slice, or picks an item of a list."""
    parents = frame.flow.parents.items()
    for node, above in ((one, two) for one, two in parents if two.__class__ in _READERS):
        tested = node in (getattr(above, "test", None), *getattr(above, "ifs", ()))
        negated = isinstance(getattr(above, "op", None), ast.Not)
        picks = isinstance(above, ast.Subscript) and node is above.slice and not isinstance(node, _PARTS)
        asked = tested or negated or picks or isinstance(above, (ast.BoolOp, ast.Slice))
        if asked and rounds(evaluator, node, frame):
            sought = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn))
            read = node.left if sought else node
            value = evaluator.value_of(read, frame)
            if (value.kind == "tensor" and value.device != "host") or value.is_moved:
                if not picks or evaluator.value_of(above.value, frame).kind in ("list", "unknown", "text"):
                    yield node, read

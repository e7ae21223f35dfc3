"""Which calls are an event of the table: what empties the cache, what collects, what waits for the device, what reads a clock."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from typing import Any

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import File, Function


def calls_doing(
    evaluator: Evaluator,
    file: File,
    does: Collection[str],
    is_wanted: Callable[[Function], bool] | None = None,
) -> Iterator[tuple[ast.Call, Frame]]:
    """The calls of a file that are one of these events, in the functions that are wanted."""
    for name in sorted(evaluator.table.doing(does)):
        for function, call in file.calls_named(name):
            frame = evaluator.root(function)
            if is_wanted is not None and not is_wanted(function):
                continue
            if evaluator.does(call, frame) in does and not evaluator.is_dead(call, frame):
                yield call, frame


def done_within(
    evaluator: Evaluator, function: Function, does: Collection[str], loop: Any = None, depth: int = 1
) -> ast.Call | None:
    """A call of a function, or of those that it calls directly, that is one of these events: one in the rounds of a loop, where one is named."""
    frame = evaluator.root(function)
    says = depth or function.words & evaluator.table.doing(does)
    for call in function.flow.every_call if says else ():
        if loop is not None and loop not in function.flow.loops(call):
            continue
        if evaluator.does(call, frame) in does:
            return call
        target = evaluator.value_of(call.func, frame).ref if depth else None
        if isinstance(target, Function) and done_within(evaluator, target, does, None, depth - 1):
            return call
    return None

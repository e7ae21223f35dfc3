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
) -> ast.expr | None:
    """A call of a function, or of those that it runs so many calls deep, also by a context that it enters, that is one of these events:
    one in the rounds of a loop, where one is named."""
    frame = evaluator.root(function)
    key = ("done", frozenset(does), loop, depth)
    if key not in frame.memo:
        frame.memo[key] = None  # while it is looked for: a function may call itself
        frame.memo[key] = _done(evaluator, frame, does, loop, depth)
    return frame.memo[key]  # type: ignore[no-any-return]


def _done(
    evaluator: Evaluator, frame: Frame, does: Collection[str], loop: Any, depth: int
) -> ast.expr | None:
    flow = frame.flow
    says = depth or frame.function.words & evaluator.table.doing(does)
    for call in flow.every_call if says else ():
        if loop is not None and loop not in flow.loops(call):
            continue
        if evaluator.does(call, frame) in does:
            return call
        inner = run_by(evaluator, call, frame) if depth else []
        if any(done_within(evaluator, one, does, None, depth - 1) for one in inner):
            return call
    for statement in flow.blocks if depth else ():
        if isinstance(statement, ast.With) and (loop is None or loop in flow.loops(statement)):
            for item in statement.items:
                context = evaluator.value_of(item.context_expr, frame)
                for method in (
                    *evaluator.methods(context, "__enter__"),
                    *evaluator.methods(context, "__exit__"),
                ):
                    if done_within(evaluator, method[0], does, None, depth - 1):
                        return item.context_expr
    return None


def run_by(evaluator: Evaluator, call: ast.Call, frame: Frame) -> list[Function]:
    """The functions of the project that a call may run: of a network its forward."""
    made = evaluator.value_of(call.func, frame)
    forwards = [method for method, _ in evaluator.methods(made, "forward")] if made.kind == "module" else []
    return forwards or [one for one in made.refs if isinstance(one, Function)]

"""What calls run, and which are an event of the table: what empties the cache, what collects, what waits for the device."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from typing import Any

from gpulint.analysis.domain.values import UNKNOWN, Value
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, remembered, settled
from gpulint.analysis.project.file import File, Function
from gpulint.analysis.syntax.nodes import called_on, last_name


def called(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Function | None, Value | None]:
    """The function of the project that a call runs, of several the first, and the object that it is called on."""
    return next(iter(all_called(evaluator, call, frame)), (None, None))


def all_called(evaluator: Evaluator, call: ast.Call, frame: Frame) -> list[tuple[Function, Value | None]]:
    """The functions of the project that a call may run, each with the object that it is called on."""
    return settled(evaluator, frame, (called, call), lambda: _called(evaluator, call, frame))  # type: ignore[no-any-return]


def _called(evaluator: Evaluator, call: ast.Call, frame: Frame) -> list[tuple[Function, Value | None]]:
    on = called_on(call)
    base = evaluator.value_of(on, frame) if on is not None else UNKNOWN
    if methods := evaluator.methods(base, last_name(call.func)):
        return [*methods]
    target = evaluator.value_of(call.func, frame)
    function = evaluator.method(target.ref, "__call__") if target.kind == "object" else target.function
    return (
        [(function, target if target.kind == "object" else target.receiver)] if function is not None else []
    )


def below(evaluator: Evaluator, function: Function) -> tuple[Function, ...]:
    """A function and those of the project that it runs, by its calls and theirs, as far as they are the same for all callers."""
    return settled(evaluator, evaluator.root(function), below, lambda: _below(evaluator, function))  # type: ignore[no-any-return]


def _below(evaluator: Evaluator, function: Function) -> tuple[Function, ...]:
    found = [function]
    for one in found:  # grows while it is gone through
        frame = evaluator.root(one)
        targets = dict.fromkeys(called(evaluator, call, frame)[0] for call in frame.flow.every_call)
        found += [other for other in targets if other is not None and other not in found]
    return tuple(found)


def leading_to(evaluator: Evaluator, function: Function, most: int = 12) -> list[Function]:
    """A function with those that lead to it by calls, for certain, the nearest first: no further ones where there are so many."""
    found = [function]
    for one in found:  # grows while it is gone through
        callers = evaluator.callers(one) if len(found) < most else ()
        above = dict.fromkeys(site.frame.function for site in callers if site.certain)
        found += [other for other in above if other not in found]
    return found


Wanted = Callable[[Evaluator, Function], bool]


def runs_any(evaluator: Evaluator, function: Function, wanted: Wanted) -> bool:
    """Whether a function is wanted, or one that it runs."""
    work = lambda: any(wanted(evaluator, one) for one in below(evaluator, function))  # noqa: E731
    return bool(settled(evaluator, evaluator.root(function), wanted, work))


def may_run(evaluator: Evaluator, call: ast.Call, frame: Frame, wanted: Wanted) -> bool:
    """Whether a call may run a function that is wanted, itself or below: so that not each frame of its function is asked what that is."""
    on, name = called_on(call), last_name(call.func)
    target, _ = called(evaluator, call, evaluator.root(frame.function))
    if frame.receiver is not None and isinstance(on, ast.Name) and on.id == frame.function.self_name:
        target = evaluator.method(frame.receiver.ref, name) or target
    if target is None:
        of_tensors = on is not None and evaluator.table.own("tensor", name) is not None
        return frame.caller is not None and not of_tensors
    return runs_any(evaluator, target, wanted)


def entered(evaluator: Evaluator, frame: Frame, depth: int = 3) -> Iterator[Frame]:
    """The frames of the calls that are seen to run a function, each in those of the calls of what makes it."""
    for site in evaluator.callers(frame.function) if depth and frame.caller is None else ():
        for outer in [*entered(evaluator, site.frame, depth - 1)] or [site.frame] if site.certain else ():
            found = entered_by(evaluator, frame.function, site.call, outer)
            if found is not None:
                yield found


def entered_by(evaluator: Evaluator, function: Function, call: Any, caller: Frame) -> Frame | None:
    """The frame of a function for a call that runs it, of the object that it is called on."""
    on = called_on(call)
    return evaluator.enter(function, call, caller, evaluator.value_of(on, caller) if on is not None else None)


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
    """A call of a function, or of those that it runs so many calls deep, that is one of these events: one in the rounds of a loop, where
    one is named."""
    frame = evaluator.root(function)
    key = ("done", frozenset(does), loop, depth)  # None while it is looked for: a function may call itself
    return remembered(frame.memo, key, None, lambda: _done(evaluator, frame, does, loop, depth))  # type: ignore[no-any-return]


def _done(evaluator: Evaluator, frame: Frame, does: Collection[str], loop: Any, depth: int) -> Any:
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
    return None


def run_by(evaluator: Evaluator, call: ast.Call, frame: Frame) -> list[Function]:
    """The functions of the project that a call may run: of a network its forward, of another object `__call__`."""
    made = evaluator.value_of(call.func, frame)
    name = {"module": "forward", "object": "__call__"}.get(made.kind)
    if name is not None:
        return [method for method, _ in evaluator.methods(made, name)]
    return [one for one in made.refs if isinstance(one, Function)]

"""What a call runs, and what a function runs by all of its calls and theirs."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, Function


def called(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Function | None, Value | None]:
    """The function of the project that a call runs, and the object that it is called on."""
    func = call.func
    base = evaluator.value_of(func.value, frame) if isinstance(func, ast.Attribute) else None
    if base is not None and base.kind in ("module", "object") and isinstance(base.ref, Class):
        method = evaluator.method(base.ref, func.attr)  # type: ignore[attr-defined]
        if method is not None:
            return method, base
    target = evaluator.value_of(func, frame)
    if target.kind == "function" and isinstance(target.ref, Function):
        return target.ref, target.receiver
    if target.kind == "object" and isinstance(target.ref, Class):
        return evaluator.method(target.ref, "__call__"), target
    return None, None


def below(evaluator: Evaluator, function: Function) -> tuple[Function, ...]:
    """A function and those of the project that it runs, by its calls and theirs, as far as they are the same for all callers."""
    memo = evaluator.root(function).memo
    if below not in memo:
        found = {function: None}
        waiting = [function]
        while waiting:
            frame = evaluator.root(waiting.pop())
            targets = [called(evaluator, call, frame)[0] for call in frame.flow.every_call]
            new = dict.fromkeys(one for one in targets if one is not None and one not in found)
            found |= new
            waiting += new
        if evaluator.is_running:  # some of it may rest on what is unfinished
            return tuple(found)
        memo[below] = tuple(found)
    return memo[below]  # type: ignore[no-any-return]


def may_run(evaluator: Evaluator, call: ast.Call, frame: Frame, wanted: Callable[[Function], bool]) -> bool:
    """Whether a call may run a function that is wanted, itself or below: so that not each frame of its function is asked what that is."""
    func = call.func
    target, _ = called(evaluator, call, evaluator.root(frame.function))
    if (
        isinstance(func, ast.Attribute)
        and frame.receiver is not None
        and isinstance(frame.receiver.ref, Class)
    ):
        if isinstance(func.value, ast.Name) and func.value.id == frame.function.self_name:
            target = evaluator.method(frame.receiver.ref, func.attr) or target
    if target is None:
        of_tensors = isinstance(func, ast.Attribute) and evaluator.table.own("tensor", func.attr) is not None
        return frame.caller is not None and not of_tensors
    return any(map(wanted, below(evaluator, target)))

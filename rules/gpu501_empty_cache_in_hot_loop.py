from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gpulint.rules._hot import Habit, how_often

from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.intended import beside_a_phase, intended, neighbour
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.networks.module_mode import module_mode
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import LOOPS, last_name
from gpulint.answers import Answer, Question, left_open, minor, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, RelatedNode, Remove, Repair, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.asked import Asked
    from gpulint.analysis.evaluate.frames import Frame
    from gpulint.analysis.project.file import Function
    from gpulint.analysis.queries.multiplicity import Repeats

_LOOKS = frozenset({"is_available", "device_count", "hasattr", "isinstance", "len"})


class EmptyCacheInHotLoop(Rule):
    """
    ## What it does
    Finds `torch.cuda.empty_cache()` called in every step of a training loop. In every so many steps,
    `if i % 5 == 0`, it is a note with that part of the cost, as long as that is a hundredth of a step or more, and in an
    evaluation, too. In other loops it is told with a doubt: a round may take so long that the call does not matter.

    ## Why is this bad
    The cache holds memory that PyTorch is about to use again. Giving it back makes the driver free it, synchronising
    the device, and the next step asks for it anew. It never lowers `memory_allocated`, and it did not lower the peak.

    ## What it costs
    A step of a 4-layer language model took 23.6 instead of 21.3 ms, 1.11 times as long, one of a 16-layer MLP 2.70 ms
    instead of 2.35 ms, 1.1 times. The peak of allocated memory stayed at 2.39 GiB; that of reserved memory fell from
    3.24 to 2.79 GiB (NVIDIA H200, torch 2.11). Between phases, after validation or a checkpoint, it can help: such
    calls are not reported (GPU406).

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs in loader:
        loss = model(inputs).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs in loader:
        loss = model(inputs).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    ## Fix safety
    Removing the call changes no result: safe. Unsafe just after a `del`, whose memory somebody wants back at once, where the
    program reads how much is reserved, beside libraries that take memory of the same GPU, and in programs of sparse points, whose
    batches differ in size. Loops whose rounds are whole
    phases, epochs, rollouts or runs tried again with less, are not reported.
    """

    code = "GPU501"
    name = "empty-cache-in-hot-loop"
    severity = Severity.WARNING
    runtime_claim = Claim("time", ("torch.cuda.empty_cache",), device_only=True)
    doubts = True
    asks = True
    # The call may stand in a helper of another file: then only the step is here.
    triggers = ((b"empty_cache", b"backward", b".step("),)

    habit = Habit(
        "frees nothing the program holds and slows it down",
        "the next step takes the same memory from the driver again; allocated memory and its peak stay as they are",
        Cost(
            "time in every step, and no memory gained",
            "1.11 times the step time of a 4-layer language model, 1.1 times that of a 16-layer MLP; H200, torch 2.11",
        ),
        slowdown=1.11,
    )

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for call, frame, ways in _events(asked):
            for repeats in ways:
                at, where = _place(asked, call, frame, repeats)
                if at is None:
                    continue
                answers = until_refuted(_answers(asked, call, frame, where, repeats))
                report = partial(_report, asked, call, frame, at, where, repeats)
                yield Claimed(at, asked.called(at), answers, report)


def _events(asked: Asked) -> Iterator[tuple[ast.Call, Frame, list[Repeats]]]:
    """The calls that empty the cache, in the file and in functions of other files that it calls, each with how it repeats."""
    for file in asked.program.searched("empty_cache", asked.file):
        for function, call in file.calls_named("empty_cache"):
            frame = asked.root(function)
            if file is asked.file:
                if _empties(asked, call, frame):
                    yield call, frame, asked.multiplicity.of(call, frame)
                continue
            sites = list(_calls_here(asked, function))
            if sites and _empties(asked, call, frame):
                yield call, frame, [one for one in asked.multiplicity.of(call, frame) if one.calls]


def _empties(asked: Asked, call: ast.Call, frame: Frame) -> bool:
    target = asked.evaluator.value_of(call.func, frame)
    row = asked.evaluator.table.function(target.ref) if isinstance(target.ref, str) else None
    return row is not None and row.does == "empties cache"


def _calls_here(asked: Asked, function: Function) -> Iterator[ast.Call]:
    """The calls of the file that run a function of another one."""
    for caller, call in asked.file.calls_named(function.name):
        if asked.evaluator.value_of(call.func, asked.root(caller)).ref is function:
            yield call


def _place(asked: Asked, call: ast.Call, frame: Frame, repeats: Repeats) -> tuple[ast.Call | None, Frame]:
    """Where it is told: beside the step, or at the call that the loop of steps makes; None where that is in another file."""
    chain = [(call, frame), *repeats.calls]
    for one, where in chain:
        if asked.steps.of(where.function) or where is repeats.frame:
            return (one, where) if asked.is_here(where) else (None, where)
    return chain[0] if asked.is_here(frame) else (None, frame)


def _answers(asked: Asked, call: ast.Call, frame: Frame, where: Frame, repeats: Repeats) -> Iterator[Answer]:
    loop = repeats.loop
    filename = (
        "" if repeats.frame is None or asked.is_here(repeats.frame) else repeats.frame.function.file.path
    )
    if repeats.rate in ("step", "every nth"):
        every = 1 if repeats.rate == "step" else repeats.period
        yield replace(EmptyCacheInHotLoop.habit.amortised(every, loop), filename=filename)
        phase = beside_a_phase(asked.evaluator, asked.steps, call, frame)
        if phase is not None:
            yield refuted(Question.REPEATS, "a whole phase stands beside it, which costs more", phase)
        if repeats.work == "forward":
            yield _without_training(asked, call, frame, repeats)
    elif repeats.rate == "phase":
        yield refuted(Question.REPEATS, "a round of this loop is a whole phase", loop, filename)
    else:
        yield refuted(Question.REPEATS, "no loop of steps is seen to run it")
    yield from intended(asked.evaluator, asked.steps, call, frame, repeats)
    for flag, wanted in repeats.flags:
        if not _decides_about_steps(asked, flag, wanted, repeats):
            yield from _under(asked, flag, repeats)
    yield from reached(asked.evaluator, where.function, call if where is frame else None)


def _without_training(asked: Asked, call: ast.Call, frame: Frame, repeats: Repeats) -> Answer:
    """What it matters in a loop that does not train: little in an evaluation, and for all that is seen nothing in others."""
    sites = ((call, frame), *repeats.calls)
    loop_frame = repeats.frame or frame
    runs = (forward_of(asked.evaluator, one.node, loop_frame) for one in asked.steps.of(loop_frame.function))
    evaluates = any(
        module_mode(asked.evaluator, one.expression, loop_frame).mode == "eval"
        for one in runs
        if one is not None
    )
    off = any(grad_mode(asked.evaluator, node, where).mode == "off" for node, where in sites)
    if isinstance(repeats.loop, LOOPS) and (evaluates or off):
        return minor(Question.REPEATS, "the loop evaluates: nothing shows that it matters")
    why = "the loop does not train: its rounds may take so long that the call does not matter"
    return left_open(Question.REPEATS, why)


def _under(asked: Asked, flag: ast.AST, repeats: Repeats) -> Iterator[Answer]:
    """What a condition that the code does not decide says: where it changes within the loop, it holds in some rounds only."""
    flow = repeats.frame.flow if repeats.frame is not None else None
    names = [one for one in ast.walk(flag) if isinstance(one, ast.Name)]
    changes = flow is not None and any(
        definition.statement in flow.blocks
        and (definition.statement is repeats.loop or repeats.loop in flow.loops(definition.statement))
        for one in names
        if one in flow.parents
        for definition in flow.reaching(one)
    )
    calls = any(isinstance(one, ast.Call) for one in ast.walk(flag))
    if changes or calls:
        yield refuted(Question.REPEATS, f"it runs in some rounds only, where `{ast.unparse(flag)}`", flag)
    else:
        yield left_open(Question.REACHED, f"it runs only where `{ast.unparse(flag)}` says so", flag)


def _decides_about_steps(asked: Asked, flag: ast.AST, wanted: bool, repeats: Repeats) -> bool:
    """Whether a condition is that of a step as well, which pays then."""
    if repeats.frame is None:
        return False
    flow = repeats.frame.flow
    if flag not in flow.parents:
        return False
    owner = flow.statement_of(flag)
    for event in asked.steps.of(repeats.frame.function):
        if any(block.owner is owner for block in flow.around(event.node)):
            return True
    return not wanted


def _report(
    asked: Asked, call: ast.Call, frame: Frame, at: ast.Call, where: Frame, repeats: Repeats
) -> Report:
    what = f"`{asked.source(at)}`"
    related: tuple[RelatedNode, ...] = ()
    if at is not call:
        other = os.path.basename(frame.function.file.path)
        elsewhere = "" if asked.is_here(frame) else f" in {other}"
        what = f"`{ast.unparse(call.func)}()`, which `{asked.source(at)}` runs{elsewhere},"
        message = f"`{frame.function.qualname}` calls it here"
        related = (
            RelatedNode(
                message, call if asked.is_here(frame) else None, frame.function.file.path, call.lineno
            ),
        )
    every = 1 if repeats.rate == "step" else repeats.period
    habit = EmptyCacheInHotLoop.habit
    return Report(
        at,
        f"{what} {how_often(every)} {habit.message}",
        habit.reason,
        habit.cost_of(every),
        repair=(lambda: _repair(asked, at, where)) if asked.is_here(frame) else None,
        related=related,
        subject=asked.called(at),
    )


def _repair(asked: Asked, at: ast.Call, where: Frame) -> Repair | None:
    """Takes the call out, where it stands alone, and an `if` that decides about nothing else."""
    flow = where.flow
    statement = flow.statement_of(at)
    if not isinstance(statement, ast.Expr) or statement.value is not at or at.args or at.keywords:
        return None
    block = flow.blocks[statement]
    whole: ast.stmt = statement
    owner = block.owner
    if (
        isinstance(owner, ast.If)
        and block.arm == "body"
        and len(owner.body) == 1
        and not owner.orelse
        and _only_looks(owner.test)
    ):
        if not (flow.blocks[owner].arm == "orelse" and len(flow.blocks[owner].statements) == 1):
            whole = owner
    library = neighbour(asked.evaluator, asked.file)
    why = (
        f"`{library}` takes memory of the same GPU, which torch's cache would keep from it" if library else ""
    )
    position = block.statements.index(statement)
    if position and isinstance(block.statements[position - 1], ast.Delete):
        why = "the memory of what is deleted just before may be wanted at once"
    return Repair.unless(why, "remove the call", (Remove(asked.node(whole)),))


def _only_looks(test: ast.expr) -> bool:
    calls = [one for one in ast.walk(test) if isinstance(one, ast.Call)]
    return all(last_name(one.func) in _LOOKS for one in calls)

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.calls import calls_doing
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.steps import trains_in
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Remove, Repair, Report, Rule


class CollectorOff(Rule):
    """
    ## What it does
    Finds `gc.disable()` in a program that trains, where nothing in the file collects by hand, switches the collector on
    again or freezes what the set-up has made. Always with a doubt: where no step makes reference cycles it costs nothing.

    ## Why is this bad
    A tensor is freed with its last reference, but objects that know each other keep theirs until the collector comes:
    states with their owners, exceptions with their frames, a second derivative with its first. Without it what they hold
    stays on the GPU. Programs that switch it off because it stops ranks at different times collect every so many steps.

    ## What it costs
    A training of an 8-layer MLP whose outputs end in reference cycles: 128 MiB at the peak after 16 steps, and more with every
    further one; with the collector on 100 MiB, collected every 4 steps 106 MiB. The same without cycles: nothing, 100 MiB in
    all three (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import gc

    import torch
    from torch import nn

    model = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gc.disable()
    for inputs in loader:
        loss = model(inputs.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    import gc

    import torch
    from torch import nn

    model = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs in loader:
        loss = model(inputs.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    Or keep it off, and call `gc.collect()` every few hundred steps.

    ## Fix safety
    Unsafe: the collector runs in the midst of steps then, which somebody may have wanted to avoid.
    """

    code = "GPU408"
    name = "collector-off"
    severity = Severity.INFO
    runtime_claim = Claim("garbage")
    triggers = ((b"gc",), (b"disable",), (b"torch", b"lightning"))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for call, frame in calls_doing(asked.evaluator, asked.file, ("stops collecting",)):
            answers = until_refuted(_answers(asked, call, frame))
            yield Claimed(call, "gc.disable", answers, partial(_report, asked, call, frame))


def _answers(asked: Asked, call: ast.Call, frame: Frame) -> Iterator[Answer]:
    for decides, _ in calls_doing(asked.evaluator, asked.file, ("collects", "sets collector")):
        yield refuted(Question.MEANT, "the program collects when it wants to", decides)
    if any(one.work == "train" and one.loops and not one.within for one in asked.steps.of(frame.function)):
        yield proven(Question.REACHED, "the loop beside it trains, and nothing in it collects")
    elif trains_in(asked.steps, asked.evaluator, asked.file):
        yield left_open(Question.REACHED, "whether the training collects in between is not in sight")
    else:
        yield refuted(Question.REPEATS, "nothing trains in this file")
    clause = "whether anything in the steps makes reference cycles, the code does not say"
    yield left_open(Question.OUTLIVES, clause)
    yield from reached(asked.evaluator, frame.function)


def _report(asked: Asked, call: ast.Call, frame: Frame) -> Report:
    return Report(
        call,
        "without the collector, tensors in reference cycles stay on the GPU until the program ends",
        "nothing collects by hand: call `gc.collect()` every few hundred steps",
        Cost(
            "whatever tensors wait in reference cycles, more with every step that makes some",
            "28 MiB after 16 steps whose outputs end in cycles, none with the collector on; H200, torch 2.11",
        ),
        repair=lambda: _repair(asked, call, frame),
    )


def _repair(asked: Asked, call: ast.Call, frame: Frame) -> Repair | None:
    statement = frame.flow.statement_of(call)
    if not isinstance(statement, ast.Expr) or statement.value is not call:
        return None
    why = "the collector runs in the midst of steps then, as Python sees fit"
    return Repair("unsafe", "leave the collector on", (Remove(asked.node(statement)),), why)

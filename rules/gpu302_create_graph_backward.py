from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.consumers import ANY
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.amounts import amounts_of
from gpulint.analysis.queries.graphs.backwards import Backward, backwards, is_true
from gpulint.analysis.queries.networks.gradients import updates_in
from gpulint.analysis.queries.outcome import outcome
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.flow import Definition, Flow
from gpulint.analysis.syntax.nodes import keyword
from gpulint.answers import Answer, Question, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Report, Rule

_OF_CYCLE = Cost(
    "what the cycle holds, until the gradients are reset",
    "136 instead of 56 MiB at the peak, 6.00 MiB a step kept by an input that requires grad, for a 2-layer MLP; H200, torch 2.11",
)
_OF_GRAPH = Cost(
    "every activation, until the gradients are reset",
    "130 MiB instead of 32 MiB held for an 8-layer MLP; H200, torch 2.11",
)


class CreateGraphBackward(Rule):
    """
    ## What it does
    Finds `backward(create_graph=True)` whose gradients nothing lets go of before the iteration ends.

    So is `torch.autograd.grad(…, create_graph=True)`, and the call of a helper that does it, where only numbers and pictures
    are made of the gradients: nobody goes through the graph that it makes of them. It is a note where nothing shows
    that the network saves much.

    ## Why is this bad
    The gradients are stored on the parameters together with the graph that made them, and that graph refers to the
    parameters: a reference cycle, which PyTorch itself warns of. The whole graph of the step, activations included,
    stays through the next forward, until `zero_grad()` or, where the model itself is dropped, until the garbage
    collector runs. `torch.autograd.grad` hands the gradients out instead: they go when their names do.

    A second backward through the gradients, as of a gradient penalty, frees most of it: then this is a *note*, as is what a
    constructor or a script runs once.

    ## What it costs
    An 8-layer MLP, batch 512 × 1,024 (NVIDIA H200, torch 2.11). An optimizer reads the gradients:

    | | held after the step | peak | growth a step |
    |---|---|---|---|
    | `zero_grad()` after the step | 32 MiB | 134 MiB | 0 B |
    | `zero_grad()` before the next backward | 130 MiB | 166 MiB | 0 B |
    | no `zero_grad()` | | 996 MiB | 66 MiB |
    | `autograd.grad` | 64 MiB | 164 MiB | 0 B |

    A model that is dropped after such a backward leaves 130 MiB behind, until the garbage collector runs; after a plain
    one 0 B. Where a second backward follows, as of a gradient penalty, the step peaks at 172 MiB, with `autograd.grad`
    at 166 MiB, and neither grows; but an input that requires grad keeps 6.00 MiB a step of a 2-layer MLP, 0 B with
    `autograd.grad`.

    The gradient of an 8-layer MLP for its input of 65,536 × 1,024, which is then detached, peaks at 8.03 GiB with
    `create_graph=True` and at 4.28 GiB without; 8.03 GiB stay until the gradient's name goes, without it 544 MiB.

    ## Example
    ```python
    import torch

    def curvature(model, inputs):
        loss = model(inputs).mean()
        loss.backward(create_graph=True)
        return [(p.grad * torch.randn_like(p)).sum() for p in model.parameters()]
    ```

    ## Use instead
    ```python
    import torch

    def curvature(model, inputs):
        loss = model(inputs).mean()
        grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        return [(g * torch.randn_like(g)).sum() for g in grads]
    ```

    ## Fix safety
    No fix is offered: what reads the gradients has to be rewritten. Where an optimizer reads them from `p.grad`, call
    `optimizer.zero_grad()` after its step, not before the next backward: then the graph is gone before the next
    forward, and nothing is reported.
    """

    code = "GPU302"
    name = "create-graph-backward"
    runtime_claim = Claim("cycle")
    doubts = True
    triggers = ((b"create_graph=True", b"create_graph = True"), (b"backward", b"autograd"))

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (asked.file.body, *asked.file.functions):
            for one in backwards(asked.evaluator, function):
                if one.says("create_graph"):
                    until = _until_let_go(asked, one)
                    answers = until_refuted(_of_cycle(asked, one, until))
                    report = partial(_report_of_cycle, asked, one, "backward" in until)
                    yield Claimed(one.call, asked.called(one.call), answers, report)
            yield from _read_only(asked, function)


def _until_let_go(asked: Asked, one: Backward) -> Sequence[str]:
    """What comes after a backward, in its round and at the head of the next, up to what lets go of the gradients or runs a network."""
    flow, function = one.frame.flow, one.frame.function
    loops = flow.loops(one.call)[:1]
    done: list[tuple[Any, str]] = [(call, each.kind) for call, each in updates_in(asked.evaluator, one.frame)]
    done += [(event.node, "forward") for event in asked.steps.of(function) if event.work == "forward"]
    done += [(found.node, "clear") for found in _let_go_by_hand(flow)]
    inside = (each for each in done if not loops or loops[0] in flow.loops(each[0]))
    placed = [(flow.order[flow.statement_of(node)], kind) for node, kind in inside]
    at = flow.order[flow.statement_of(one.call)]
    after = sorted((order < at, order, kind) for order, kind in placed if order != at)
    following = [kind for _, _, kind in after]
    ends = [number for number, kind in enumerate(following) if kind in ("clear", "forward")]
    return following[: ends[0] + 1] if ends else following


def _let_go_by_hand(flow: Flow) -> Iterator[Definition]:
    """`p.grad = None` and `del p.grad`."""
    for found in flow.definitions_of("delete", "assign"):
        none = isinstance(found.value, ast.Constant) and found.value.value is None
        if found.key.endswith(".grad") and (found.kind == "delete" or none):
            yield found


def _of_cycle(asked: Asked, one: Backward, until: Sequence[str]) -> Iterator[Answer]:
    if until[-1:] == ["clear"]:
        yield refuted(Question.OUTLIVES, "the gradients are let go of before another forward runs")
    yield proven(Question.OUTLIVES, "nothing lets go of the gradients before another forward runs")
    yield from reached(asked.evaluator, one.frame.function)


def _report_of_cycle(asked: Asked, one: Backward, again: bool) -> Report:
    text = asked.source(one.call)
    if again:
        message = f"`{text}` ties the parameters to their gradients in a reference cycle"
        reason = "a later backward frees most of the graph; the cycle stays until the gradients are reset"
        return Report(one.call, message, reason, _OF_CYCLE, Severity.INFO)
    message = f"`{text}` keeps the step's whole graph on the parameters' gradients, in a reference cycle"
    reason = "nothing after it in this iteration resets the gradients: the graph lives into the next forward"
    return Report(one.call, message, reason, _OF_GRAPH)


def _read_only(asked: Asked, function: Function) -> Iterator[Claimed]:
    """`torch.autograd.grad(…, create_graph=True)` of which only numbers and pictures are made."""
    evaluator, frame = asked.evaluator, asked.root(function)
    for call in function.flow.calls.get("grad", ()):
        if evaluator.does(call, frame) == "differentiates" and is_true(keyword(call, "create_graph")):
            answers = until_refuted(_of_numbers(asked, call, frame))
            yield Claimed(call, asked.called(call), answers, partial(_report_of_numbers, asked, call))


def _of_numbers(asked: Asked, call: ast.Call, frame: Frame) -> Iterator[Answer]:
    evaluator = asked.evaluator
    what = outcome(evaluator, call, frame, (ANY,))
    if what.wanted or what.returned:
        yield refuted(Question.BACKWARD, "whoever gets the gradients may go backward through them")
    kept = any(one.role == "stored" and isinstance(one.node, ast.Attribute) for one in what.stored)
    if what.unseen or kept or not what.read:
        yield refuted(Question.READS, "what becomes of the gradients is not shown")
    yield proven(Question.READS, "only numbers and pictures are made of the gradients", what.read[0].node)
    made = evaluator.value_of(call.args[0], frame).origins if call.args else frozenset()
    yield from amounts_of(evaluator, made)


def _report_of_numbers(asked: Asked, call: ast.Call) -> Report:
    return Report(
        call,
        f"`{asked.called(call)}` makes a graph of the gradients, and only numbers are made of them",
        "`create_graph=True` keeps the forward's graph and adds one of the backward, for a second backward that never comes",
        Cost(
            "all that the forward has saved, and as much again for the backward, until the gradients go",
            "8.03 instead of 4.28 GiB at the peak for the input's gradient of an 8-layer MLP, 65,536 × 1,024; H200, torch 2.11",
        ),
    )

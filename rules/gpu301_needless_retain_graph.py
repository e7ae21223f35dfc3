from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import in_text_order
from gpulint.analysis.evaluate.consumers import Use
from gpulint.analysis.queries.amounts import amounts_of
from gpulint.analysis.queries.graphs.backwards import Backward, again, backwards, older_than_round
from gpulint.analysis.queries.outcome import outcome, place_in
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import keyword
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Remove, Repair, Report, Rule


class NeedlessRetainGraph(Rule):
    """
    ## What it does
    Finds `backward(retain_graph=True)` where no second backward goes through that graph.

    With a doubt it also tells of the last backward of a function or closure whose graph lives on with what is returned, or
    with what a caller has handed in, and of classes in which every backward keeps its graph. It is a note where
    nothing shows that the graph saves much.

    ## Why is this bad
    `backward()` frees each saved tensor as soon as it is done with it. With `retain_graph=True` all of them stay until
    the last value of the graph is rebound, usually at the next iteration's forward.

    ## What it costs
    1.58 GiB still allocated after the backward, 698 MiB without it, for a 4-layer language model. The peak is 2.39 GiB either
    way (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    ## Fix safety
    Removing the argument changes no gradient, and is unsafe: a network or a hook may keep a part of the graph between calls, and
    code that is not seen, a caller or another method may go backward once more through what it is given, gets back or finds in
    an attribute. Then the second backward raises an error.
    """

    code = "GPU301"
    name = "needless-retain-graph"
    runtime_claim = Claim("retained")
    triggers = ((b"retain_graph",), (b"backward",))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (asked.file.body, *asked.file.functions):
            for one in backwards(asked.evaluator, function):
                if one.says("retain_graph") and keyword(one.call, "create_graph") is None:
                    answers = until_refuted(_answers(asked, one))
                    yield Claimed(one.call, asked.called(one.call), answers, partial(_report, asked, one))


def _answers(asked: Asked, one: Backward) -> Iterator[Answer]:
    evaluator, function = asked.evaluator, one.frame.function
    other = again(evaluator, one)
    if other is not None:
        here = other.node if asked.is_here(other.frame) else None
        yield refuted(Question.BACKWARD, "another backward goes through the same graph", here)
    older = older_than_round(evaluator, one)
    if older is not None:
        yield refuted(Question.BACKWARD, "each round of the loop goes through a graph older than it", older)
    ways = [outcome(evaluator, node, frame) for node, frame in in_text_order(one.origins)]
    unseen = next((use for way in ways for use in way.unseen), None)
    returned = any(_is_of_round(one, use) for way in ways for use in way.returned)
    if returned and function.name == "forward" and function.cls is not None:
        yield refuted(Question.BACKWARD, "what a forward gives is there to go backward through")
    if not one.origins:
        clause = "the loss is a caller's, who may call `backward` on it again"
    elif unseen is not None:
        clause = f"`{unseen.name}`, whose code is not seen, is given the graph and may call `backward` again"
    else:
        clause = f"`{function.name}` returns a part of the graph, and its caller may call `backward` on that"
        clause = clause if returned else ""
    unless = left_open(Question.BACKWARD, clause)
    yield unless if clause else proven(Question.BACKWARD, "no second backward goes through it")
    yield _outlives(asked, one, any(way.returned or way.stored for way in ways))
    yield from amounts_of(evaluator, one.origins)
    yield from reached(evaluator, function)


def _is_of_round(one: Backward, use: Use) -> bool:
    """Whether what is returned goes to a caller from the rounds that go backward: what comes out after them all has been gone through."""
    flow, loops = one.frame.flow, one.frame.flow.loops(one.call)
    ends = [use.node] if use.frame.function is one.frame.function else flow.returns  # to those further out
    return not loops or any(loops[0] in flow.loops(each) for each in ends)


def _outlives(asked: Asked, one: Backward, kept: bool) -> Answer:
    """Whether the graph is there for some more: until the next round has made its own, or where somebody has it."""
    flow, function = one.frame.flow, one.frame.function
    loops = flow.loops(one.call)
    if loops:
        return proven(Question.OUTLIVES, "it stays until the next round has made its own", loops[0])
    if kept or isinstance(one.through, ast.Attribute) or function.is_module:
        return proven(Question.OUTLIVES, "it stays where it is kept")
    elsewhere = [each for each in in_text_order(one.origins) if place_in(function, *each) is None]
    for node, where in elsewhere:
        if isinstance(where.flow.statement_of(node), ast.Assign) and where.flow.loops(node):
            return proven(Question.OUTLIVES, f"`{where.function.name}` has it until its next round")
    if elsewhere or not one.origins:
        clause = "the caller may drop the loss right after this, and the graph with it: then it saves nothing"
        return left_open(Question.OUTLIVES, clause)
    at = flow.order[flow.statement_of(one.call)]
    later = [each for each in asked.steps.of(function) if flow.order[flow.statement_of(each.node)] > at]
    if any(each.work == "forward" for each in later):
        return proven(Question.OUTLIVES, "it stays while another forward runs", later[0].node)
    if later:
        clause = "ends, and its graph is freed, before the next is made: then it saves little"
        return left_open(Question.OUTLIVES, f"`{function.name}` {clause}")
    return refuted(Question.OUTLIVES, "the function ends, and the graph with it")


def _report(asked: Asked, one: Backward) -> Report:
    return Report(
        one.call,
        f"`{asked.source(one.call)}` keeps the whole graph, and no second backward goes through it",
        "the activations stay in memory beside those of the next forward, until the loss is assigned anew",
        Cost(
            "all that the graph has saved, after the backward as before it",
            "1.58 GiB against 698 MiB allocated after the backward of a 4-layer language model; H200, torch 2.11",
        ),
        repair=lambda: _repair(asked, one),
    )


def _repair(asked: Asked, one: Backward) -> Repair | None:
    call: Any = asked.node(one.call)
    named = (each for each in call.args if each.keyword is not None)
    argument = next((each for each in named if each.keyword.value == "retain_graph"), None)
    if argument is None:
        return None
    why = "what keeps a part of the graph, or is given it, may go through it again"
    return Repair("unsafe", "remove `retain_graph=True`", (Remove(argument),), why)

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.amounts import amounts_of
from gpulint.analysis.queries.graphs.backwards import Backward, backwards, carries
from gpulint.analysis.queries.graphs.carried import graph_calls
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.outcome import outcome
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.stores.stores import Store, graph_in, own_stores, owner_of
from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import key_of, last_name
from gpulint.answers import Answer, Question, left_open, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Insert, RelatedNode, Remove, Repair, Replace, Report, Rule

_COST: Final = Cost(
    "the activations of all batches at once, instead of one's",
    "44 % more at the peak for four micro-batches, 1.66 against 1.16 GiB for a 4-layer language model; H200, torch 2.11",
)
_LINEAR: Final = frozenset({"sum", "mean", "stack", "cat", "len"})  # the gradient of each summand is its own


class DeferredBackwardRule(Rule):
    """
    ## What it does
    Finds losses of several micro-batches that are summed in a loop, with one backward after it, or in some of its rounds. Rounds that go on
    from what the one before has computed, as over the frames of one sequence, need that one backward, and are let be.
    It is a note where nothing shows that a round's graph saves much, or the network is small.

    ## Why is this bad
    Gradients add up by themselves: a backward per micro-batch gives the same gradients. Summing first keeps the
    activations of all micro-batches alive at once, which is the memory that accumulation was meant to save.

    ## What it costs
    Four micro-batches of a 4-layer language model peak at 1.66 GiB with one backward for their sum, and at 1.16 GiB with a
    backward each: 30 % less. Four backwards take a little longer, 29.3 instead of 26.7 ms a step (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50().cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(micro_batches):
        optimizer.zero_grad()
        total = 0.0
        for inputs, targets in micro_batches:
            loss = criterion(model(inputs.cuda()), targets.cuda())
            total += loss
        total.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50().cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(micro_batches):
        optimizer.zero_grad()
        total = 0.0
        for inputs, targets in micro_batches:
            loss = criterion(model(inputs.cuda()), targets.cuda())
            loss.backward()
            total += loss.detach()
        optimizer.step()
    ```

    ## Fix safety
    The fix moves the backward into the loop. It is unsafe, because gradients are then the sum over batches even where
    code between the loop and the backward would have stopped it, and it is only offered where the sum has no other
    use and no `zero_grad()` stands between the loop and its backward.
    """

    code = "GPU303"
    name = "deferred-backward"
    runtime_claim = Claim("deferred")
    triggers = ((b"backward",), (b"for ", b"while "), (b"+=", b"append", b"+ ", b"add_(", b"] ="))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (asked.file.body, *asked.file.functions):
            for backward in backwards(asked.evaluator, function):
                for store, name, loop in _deferred(asked, backward):
                    answers = until_refuted(_answers(asked, store, name, loop))
                    report = partial(_report, asked, store, name, loop, backward)
                    yield Claimed(store.at, name, answers, report)


def _deferred(asked: Asked, backward: Backward) -> Iterator[tuple[Store, str, Any]]:
    """What is added to a sum in the rounds of a loop, with that, where one backward comes after them, or in some of them only."""
    frame, flow, call = backward.frame, backward.frame.flow, backward.call
    names = set(_summed(flow, backward.through))
    for store in own_stores(asked.evaluator, frame) if names else ():
        name = key_of(store.container) or ""
        if store.way in ("added", "put") and name in names:
            rounds = [one.loop for one in owner_of(asked.evaluator, store.container, frame, store.at).rounds]
            after = [one for one in rounds if one not in flow.loops(call)]
            if after or set(flow.conditions(call)) - set(flow.conditions(store.at)):
                yield from ((store, name, one) for one in (after[-1:] or rounds[:1]))


def _summed(flow: Flow, node: Any, depth: int = 3) -> Iterator[str]:
    """The keys that an expression is a sum of."""
    calls = {last_name(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
    for one in flow.bound_in(node) if calls <= _LINEAR else ():
        yield one.key
        if one.kind == "assign" and not one.path and depth:
            yield from _summed(flow, one.value, depth - 1)


def _answers(asked: Asked, store: Store, name: str, loop: Any) -> Iterator[Answer]:
    """On what it stands that a backward in each round would give the same gradients for less memory."""
    evaluator, frame, flow = asked.evaluator, store.frame, store.frame.flow
    value = evaluator.value_of(store.value, frame)
    runs = [each for each in graph_calls(value) if forward_of(evaluator, *each) is not None]
    ways = [where.leading_to(node) for node, where in runs]
    inside = [any(each is frame and loop in flow.loops(at) for at, each in way) for way in ways]
    if not runs or not all(inside):
        yield refuted(Question.GRAPH, "that a network has made all of it in the same round is not seen")
    if asked.steps.is_over_parts(loop, frame):
        yield refuted(Question.REPEATS, "the loop goes through networks, and not through batches", loop)
    fed_back = any(carries(evaluator, node, where, loop) for node, where in runs)
    if fed_back or _hands_on(asked, name, loop, frame):
        yield refuted(Question.BACKWARD, "each round goes on from what the one before has computed")
    yield from (left_open(Question.TENSOR, each.clause) for each in value.assumptions)
    became = [outcome(evaluator, *each) for each in runs]
    kept = [use for each in became for use in (*each.unseen, *each.stored) if use.name != name]
    for use in kept[:1]:
        yield left_open(Question.BACKWARD, f"`{use.name}` may hand what it is given to the next round")
    yield from amounts_of(evaluator, runs)
    yield from reached(evaluator, frame.function)


def _hands_on(asked: Asked, name: str, loop: Any, frame: Frame) -> bool:
    """Whether a round uses what one before has left, with a graph: what may be bound in the loop as well as before it."""
    flow = frame.flow
    uses = [use for key, several in flow.uses.items() if key != name for use in several]
    for use in (use for use in uses if loop in flow.loops(use)):
        inside = [each for each in flow.reaching(use) if loop in flow.loops(each.statement)]
        values = (asked.evaluator.definition(each, frame) for each in inside)
        if len(inside) < len(flow.reaching(use)) and any(graph_in(asked.evaluator, each) for each in values):
            return True
    return False


def _report(asked: Asked, store: Store, name: str, loop: Any, backward: Backward) -> Report:
    return Report(
        store.at,
        f"`{name}` sums `{asked.source(store.value)}` over several batches for one backward: all their activations are alive at once",
        "gradients accumulate by themselves: a backward for each batch gives the same sum",
        _COST,
        repair=partial(_repair, asked, store, name, loop, backward),
        related=(RelatedNode("the one backward", backward.call),),
    )


def _repair(asked: Asked, store: Store, name: str, loop: Any, backward: Backward) -> Repair | None:
    """`total.backward()` after the loop becomes `loss.backward()` in it, scaled alike; None where more is at stake."""
    import libcst as cst

    added, call, flow = store.at, backward.call, store.frame.flow
    if not isinstance(added, ast.AugAssign) or not isinstance(added.op, ast.Add):
        return None
    losses = [each for each in ast.walk(added.value) if isinstance(each, ast.Name)]
    uses = [each for each in flow.uses.get(name, ()) if flow.statement_of(each) is not added]
    alone = isinstance(flow.parents.get(call), ast.Expr) and not (call.args or call.keywords)
    until = range(flow.order.get(loop, 0), flow.order[flow.statement_of(call)])
    cleared = any(flow.order[flow.statement_of(each)] in until for each in flow.calls.get("zero_grad", ()))
    ends = loop in flow.loops(added) and loop not in flow.loops(call)
    if cleared or not (ends and alone and len(losses) == len(uses) == 1 and uses[0] is backward.through):
        return None
    scaled = asked.tree.code_for_node(asked.node(added.value))
    scaled = f"({scaled})" if isinstance(added.value, ast.BinOp) else scaled
    changes = (
        Insert(asked.line(added), cst.parse_statement(f"{scaled}.backward()"), after=False),
        Replace(asked.node(losses[0]), cst.parse_expression(f"{losses[0].id}.detach()")),
        Remove(asked.node(flow.parents[call])),
    )
    why = "gradients are then there even where code between the loop and the backward would have stopped it"
    return Repair("unsafe", "backward for each batch, in the loop", changes, why)

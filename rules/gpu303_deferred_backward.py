from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.consumers import ANY, consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Function
from gpulint.analysis.queries.amounts import amounts_of
from gpulint.analysis.queries.graphs.backwards import Backward, backwards, carries
from gpulint.analysis.queries.graphs.carried import graph_calls
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.outcome import outcome
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.stores.stores import Store, emptying, graph_in, own_stores, owner_of
from gpulint.analysis.syntax.nodes import key_of, last_name
from gpulint.answers import Answer, Question, left_open, minor, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Insert, RelatedNode, Remove, Repair, Replace, Report, Rule

_COST: Final = Cost(
    "the activations of all batches at once, instead of one's",
    "44 % more at the peak for four micro-batches, 1.66 against 1.16 GiB for a 4-layer language model; H200, torch 2.11",
)
_LINEAR: Final = frozenset({"sum", "mean", "stack", "cat"})  # the gradient of each summand is its own


class DeferredBackwardRule(Rule):
    """
    ## What it does
    Finds losses of several micro-batches that are summed in a loop, with one backward after it. Rounds that go on from what
    the one before has computed, as over the frames of one sequence, need that one backward, and are let be.
    It is a note where nothing shows that a round's graph saves much, or after how many rounds the backward comes,
    `if (step + 1) % every == 0`; and has low confidence where the network is small, or what a round makes is put where the next may find it.

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
                for one in _deferred(asked, backward):
                    answers = until_refuted(_answers(asked, one))
                    yield Claimed(one.store.at, one.name, answers, partial(_report, asked, one))


@dataclass(frozen=True, slots=True)
class _Deferred:
    """A loss that each round of `loop` adds to the sum `name`, through which one backward goes; `every` is the condition under which that
    comes in some of the rounds, None where it comes after all of them."""

    store: Store
    name: str
    loop: Any
    backward: Backward
    every: Any


def _deferred(asked: Asked, backward: Backward) -> Iterator[_Deferred]:
    for node, frame in dict.fromkeys(_summed(asked.evaluator, backward.through, backward.frame, set())):
        flow, call = frame.flow, backward.call
        for store in own_stores(asked.evaluator, frame) if asked.is_here(frame) else ():
            if store.way in ("added", "put") and key_of(store.container) == key_of(node):
                owner = owner_of(asked.evaluator, store.container, frame, store.at)
                rounds = [each.loop for each in owner.rounds if each.frame is frame]
                after = [each for each in rounds if each not in flow.loops(call)]
                own = flow.conditions(store.at)
                every = [each[0] for each in flow.conditions(call) if each not in own]
                emptied = emptying(owner.key, key_of(node) or "", frame)
                anew = [each for each in emptied if rounds[:1] == flow.loops(each)[:1]]
                if after or (rounds and every and anew):
                    loop = after[-1] if after else rounds[0]
                    yield _Deferred(store, owner.key, loop, backward, None if after else every[0])


def _summed(evaluator: Evaluator, node: Any, frame: Frame, seen: set[Any]) -> Iterator[tuple[Any, Frame]]:
    """The keys that an expression is a sum of, scaled by what is known before, each with the frame that it stands in."""
    parts: list[tuple[Any, Frame]] = []
    if isinstance(node, ast.BinOp):
        sides = ((node.left, node.right), (node.right, node.left))
        adds = isinstance(node.op, (ast.Add, ast.Sub))
        parts = [(one, frame) for one, other in sides if adds or _scales(evaluator, other, frame)]
    elif isinstance(node, ast.Call):
        target, func, row = evaluator.value_of(node.func, frame), node.func, evaluator.row_of(node, frame)
        if isinstance(target.ref, Function):
            inner = evaluator.enter(target.ref, node, frame, target.receiver)
            parts = [(one.value, inner) for one in inner.flow.returns] if inner is not None else []
        elif last_name(func) in _LINEAR or (row is not None and row.gives == "argument"):
            parts = [(one, frame) for one in (*node.args[:1], getattr(func, "value", None))]
    elif key_of(node) is not None and node in frame.flow.parents:
        yield node, frame
        bound = frame.flow.reaching(node)
        parts = [(one.value, frame) for one in bound if one.kind == "assign" and not one.path]
    for one, where in parts:
        if one is not None and one not in seen:
            seen.add(one)
            yield from _summed(evaluator, one, where, seen)


def _scales(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether a factor is a number, or was there before: what the rounds have given comes too late for a backward in each."""
    kinds = {one.kind for one in frame.flow.bound_in(node)}
    return kinds.isdisjoint(("assign", "augmented")) or evaluator.value_of(node, frame).kind == "number"


def _answers(asked: Asked, one: _Deferred) -> Iterator[Answer]:
    """On what it stands that a backward in each round would give the same gradients for less memory."""
    evaluator, frame, flow = asked.evaluator, one.store.frame, one.store.frame.flow
    value = evaluator.value_of(one.store.value, frame)
    runs = [each for each in graph_calls(value) if forward_of(evaluator, *each) is not None]
    ways = [where.leading_to(node) for node, where in runs]
    if not runs:
        yield refuted(Question.GRAPH, "what is summed is not seen to have the graph of a network")
    if asked.steps.is_over_parts(one.loop, frame):
        yield refuted(Question.REPEATS, "the loop goes through networks, and not through batches", one.loop)
    if not all(any(w is frame and one.loop in flow.loops(at) for at, w in way) for way in ways):
        yield refuted(Question.GRAPH, "each would go through what was computed before the loop again")
    if _hands_on(asked, one) or any(carries(evaluator, node, where, one.loop) for node, where in runs):
        yield refuted(Question.BACKWARD, "each round goes on from what the one before has computed")
    yield proven(Question.BACKWARD, "one backward goes through the losses of all rounds", one.backward.call)
    yield from (left_open(Question.TENSOR, each.clause) for each in value.assumptions)
    what = [outcome(evaluator, *each) for each in runs]
    kept = [use for each in what for use in (*each.unseen, *each.stored) if use.name != one.name]
    if kept:
        yield left_open(Question.BACKWARD, f"`{kept[0].name}` may hand what it is given to the next round")
    if one.every is not None:
        if asked.multiplicity.period(one.every, frame) is None:
            leave = minor if asked.multiplicity.counts(one.every, frame) else left_open
            yield leave(Question.REPEATS, "after how many rounds the backward comes is not shown", one.every)
    yield from amounts_of(evaluator, runs)
    yield from reached(evaluator, frame.function)


def _hands_on(asked: Asked, one: _Deferred) -> bool:
    """Whether a round uses what one before has left, with a graph: what may be bound in the loop as well as before it, and of what is
    collected what goes into a network."""
    frame, flow, loop = one.store.frame, one.store.frame.flow, one.loop
    sums = {key_of(each.container) for each in own_stores(asked.evaluator, frame)}
    uses = [(key, use) for key, several in flow.uses.items() if key != one.name for use in several]
    for key, use in ((key, use) for key, use in uses if loop in flow.loops(use)):
        reaching = flow.reaching(use)
        inside = [each for each in reaching if loop in flow.loops(each.statement)]
        values = (asked.evaluator.definition(each, frame) for each in inside)
        if len(inside) < len(reaching) and any(graph_in(asked.evaluator, each) for each in values):
            fed = consumers(asked.evaluator, use, frame, "graph", (ANY,)) if key in sums else ()
            if key not in sums or any(each.role == "fed" for each in fed):
                return True
    return False


def _report(asked: Asked, one: _Deferred) -> Report:
    what = asked.source(one.store.value)
    return Report(
        one.store.at,
        f"`{one.name}` sums `{what}` over several batches for one backward: all their activations are alive at once",
        "gradients accumulate by themselves: a backward for each batch gives the same sum",
        _COST,
        repair=partial(_repair, asked, one),
        related=(RelatedNode("the one backward", one.backward.call),),
    )


def _repair(asked: Asked, one: _Deferred) -> Repair | None:
    """`total.backward()` after the loop becomes `loss.backward()` in it, scaled alike; None where more is at stake."""
    import libcst as cst

    added, call, flow = one.store.at, one.backward.call, one.store.frame.flow
    if not isinstance(added, ast.AugAssign) or not isinstance(added.op, ast.Add) or one.every is not None:
        return None
    losses = [each for each in ast.walk(added.value) if isinstance(each, ast.Name)]
    uses = [each for each in flow.uses.get(one.name, ()) if flow.statement_of(each) is not added]
    alone = isinstance(flow.parents.get(call), ast.Expr) and not (call.args or call.keywords)
    until = range(flow.order[one.loop], flow.order.get(flow.statement_of(call), 0))
    cleared = any(flow.order[flow.statement_of(each)] in until for each in flow.calls.get("zero_grad", ()))
    if cleared or not (alone and len(losses) == len(uses) == 1 and uses[0] is one.backward.through):
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

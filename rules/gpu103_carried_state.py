from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import Value
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.calls import leading_to
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.graphs.backwards import Backward, backwards
from gpulint.analysis.queries.graphs.carried import (
    Carried,
    carried,
    cuts,
    handed_on,
    is_cut_within,
    is_table,
    set_anew,
)
from gpulint.analysis.queries.networks.module_mode import module_mode
from gpulint.analysis.queries.networks.runs import Run, runs_of
from gpulint.analysis.queries.outcome import outcome
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import arguments, default_of
from gpulint.answers import Answer, Question, confidence_of, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Change, Claimed, Cost, Insert, Remove, Repair, Report, Rule

_COST: Final = Cost("the activations of all earlier iterations", "7.06 MiB a step for an LSTM, and a step ever slower; H200, torch 2.11")  # fmt: skip


class CarriedState(Rule):
    """
    ## What it does
    Finds recurrent state that goes from one training iteration into the next without `detach()`, under a name or in an attribute, be it of
    a layer whose network is trained elsewhere: without `retain_graph=True` that has a doubt, as the second backward would fail. Of a table of
    results that goes through a network out of sight it tells with a doubt: the network may only fill it. In an evaluation with grad, where
    no backward is seen to need it, it is a *warning*.

    ## Why is this bad
    The state carries the graph of the iteration that made it, which carries the one before: the graph grows with
    every batch. Without `retain_graph=True` the second backward fails; with it, memory and step time grow until the
    GPU is full.

    ## What it costs
    An LSTM that carries its state with `retain_graph=True` grew by 7.06 MiB on the GPU and 11.3 KiB on the host in every
    step, and the median of its first steps took 7.89 ms; detached, 0 B on the GPU and 2.05 ms (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torch import nn

    rnn = nn.GRU(8, 16)
    head = nn.Linear(16, 8)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)

    def train(chunks):
        hidden = torch.zeros(1, 4, 16)
        for inputs, targets in chunks:
            output, hidden = rnn(inputs, hidden)
            loss = criterion(head(output), targets)
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    rnn = nn.GRU(8, 16)
    head = nn.Linear(16, 8)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)

    def train(chunks):
        hidden = torch.zeros(1, 4, 16)
        for inputs, targets in chunks:
            hidden = hidden.detach()
            output, hidden = rnn(inputs, hidden)
            loss = criterion(head(output), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix cuts the graph of every state that the round hands on, before it is used, and drops `retain_graph=True` where that was its only reason. It is
    unsafe: gradients no longer flow into earlier iterations, which is what truncated backpropagation through time means.
    """

    code = "GPU103"
    name = "carried-state"
    severity = Severity.ERROR
    runtime_claim = Claim("drift")
    triggers = ((b"torch", b"lightning"), (b"backward", b".eval()"), (b"for ", b"while "))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (asked.file.body, *asked.file.functions):
            found = list(_considered(asked, function))
            told = [one for one, _, answers in found if confidence_of(answers) is not None]
            for one, through, answers in found:
                together = [other for other in told if other.loop is one.loop]
                report = partial(_report, asked, one, through, together)
                yield Claimed(one.call, one.key, answers, report)


def _considered(
    asked: Asked, function: Function
) -> Iterator[tuple[Carried, list[Backward], tuple[Answer, ...]]]:
    """What may be carried, with the backwards of its rounds."""
    evaluator, frame = asked.evaluator, asked.root(function)
    for call in function.flow.every_call:
        if any(handed_on(call, frame, arguments(call))):
            for run in runs_of(evaluator, call, frame):
                for one in carried(evaluator, call, frame, arguments(call)):
                    through = _backwards(asked, one)
                    yield one, through, until_refuted(_answers(asked, run, one, through))


def _backwards(asked: Asked, one: Carried) -> list[Backward]:
    """The backwards of each round: of the loop, or of those who lead to what an object carries."""
    evaluator, function = asked.evaluator, one.frame.function
    several = [function] if one.loop is not None else leading_to(evaluator, function)
    found = [each for other in several for each in backwards(evaluator, other)]
    return [each for each in found if one.loop is None or one.loop in each.frame.flow.loops(each.call)]


def _begun_within(asked: Asked, one: Carried, through: list[Backward]) -> Any:
    """What sets it anew in a function that each step calls, between what carries it and who goes backward."""
    own = {each.frame.function for each in through}
    _, *others = leading_to(asked.evaluator, one.frame.function)
    below = takewhile(lambda other: other not in own, others if own else ())
    return next((by for other in below for by in set_anew(asked.evaluator, one, asked.root(other))), None)


def _answers(asked: Asked, run: Run, one: Carried, through: list[Backward]) -> Iterator[Answer]:
    """On what it stands that a round goes through the graph of the one before."""
    evaluator = asked.evaluator
    if grad_mode(evaluator, run.inner, run.where).mode not in ("on", "mixed"):
        yield refuted(Question.GRAD, "grad is off, or may be")
    beside = [each.call for each in through if each.frame is one.frame]
    by = next(cuts(evaluator, one, beside), None)
    if by is not None or is_cut_within(evaluator, one):
        yield refuted(Question.GRAPH, "it is cut in the rounds that go backward", by)
    anew = [next(set_anew(evaluator, one, each.frame, each.call), None) for each in through]
    within = _begun_within(asked, one, through) if one.loop is None else None
    if within is not None or (anew and None not in anew):
        yield refuted(Question.GRAPH, "those who call it set it anew in each round", within or anew[0])
    if not through:
        evaluates = module_mode(evaluator, run.named, run.where).mode == "eval"
        if one.loop is None or not evaluates or asked.steps.is_over_parts(one.loop, one.frame):
            yield refuted(Question.BACKWARD, "no backward runs in its rounds, nor do these evaluate")
        if outcome(evaluator, run.inner, run.where).wanted:
            yield refuted(Question.BACKWARD, "a backward goes through all of its rounds")
        if asked.multiplicity.trips(one.loop, one.frame) is not None:
            yield refuted(Question.REPEATS, "its rounds are few", one.loop)
    elif not any(each.says("retain_graph") for each in through):
        if run.network.ref is None and evaluator.calling.made_by(run.network) is None:
            clause = "the network, which is not seen, cuts it: the second backward would fail"
            yield refuted(Question.GRAPH, clause)
        if one.loop is None:
            yield left_open(Question.GRAPH, "what begins it anew may be out of sight: else it would fail")
    if is_table(one) and isinstance(run.network.ref, Class):
        yield refuted(Question.READS, "it is a table that the network fills")
    elif is_table(one):
        clause = f"whether the network reads what is in `{one.key}`, or only fills it, is not seen"
        yield left_open(Question.READS, clause)
    yield proven(Question.BACKWARD, "each round goes through the graph of the one before")
    yield from (left_open(Question.TENSOR, each.clause) for each in run.network.assumptions)
    yield from reached(evaluator, one.frame.function)


def _report(asked: Asked, one: Carried, through: list[Backward], together: list[Carried]) -> Report:
    reason = "the next backward would go through the graph of the iteration before, which is freed: it fails"
    if not through:
        reason = (
            "grad is enabled in this evaluation: each graph is the input of the next, and none is ever freed"
        )
    elif any(each.says("retain_graph") for each in through):
        reason = "retain_graph=True keeps every earlier iteration's activations alive"
    return Report(
        one.call,
        f"`{asked.source(one.node)}` carries its autograd graph from one iteration into the next",
        reason,
        _COST,
        Severity.ERROR if through else Severity.WARNING,
        repair=partial(_repair, asked, through, together) if through else None,
    )


def _repair(asked: Asked, through: list[Backward], together: list[Carried]) -> Repair | None:
    """Cut every state that the round hands to the next: with one of them left attached nothing is freed."""
    changes: list[Change] = []
    for one in {each.key: each for each in together}.values():
        inserted = _cut(asked, one)
        if inserted is None:
            return None
        changes.append(inserted)
    own = list(backwards(asked.evaluator, together[0].frame.function))
    if len(own) == len(through) == 1 and own[0].call is through[0].call:  # nothing else needs what it retains
        call: Any = asked.node(own[0].call)
        named = (each for each in call.args if each.keyword is not None)
        changes += [Remove(each) for each in named if each.keyword.value == "retain_graph"]
    why = "gradients no longer flow into earlier iterations"
    return Repair("unsafe", "cut the graph before the state is used again", tuple(changes), why)


def _cut(asked: Asked, one: Carried) -> Insert | None:
    from gpulint.fix.nodes import assign

    if "[" in one.key or is_table(one):
        return None
    values = list(_given(asked, one))
    parts = [part for value in values if value.kind == "tuple" for part in value.parts or ()]
    parts_none = any(each.kind == "none" for each in parts)
    part = "None if part is None else part.detach()" if parts_none else "part.detach()"
    given = [*values, asked.evaluator.value_of(one.node, one.frame)]
    nested = parts_none or any(value.kind in ("tuple", "list") for value in given)
    expression = f"tuple({part} for part in {one.key})" if nested else f"{one.key}.detach()"
    if any(value.kind == "none" for value in values):
        expression = f"None if {one.key} is None else {expression}"
    statement = one.frame.flow.statement_of(one.node)
    return Insert(asked.line(statement), assign(one.key, expression), after=False)


def _given(asked: Asked, one: Carried) -> Iterator[Value]:
    """What is carried may be before it is: of an object's attribute, in all methods."""
    function = one.frame.function
    _, dot, name = one.key.partition(".")
    for each in function.cls.methods.values() if dot and function.cls is not None else (function,):
        key, frame = f"{each.self_name}.{name}" if dot else one.key, asked.root(each)
        for definition in each.flow.definitions.get(key, ()):
            yield asked.evaluator.definition(definition, frame)
            node = default_of(each.node, key) if definition.kind == "parameter" else definition.value
            if node is not None and not definition.path:
                yield from asked.evaluator.ways(node, frame)

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpulint.rules._forwards import under_no_grad

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import Graph
from gpulint.analysis.evaluate.consumers import Use, consumers
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.cover import shares_rows
from gpulint.analysis.queries.effects import gradients_are_read, origins_of, place_of, position, share
from gpulint.analysis.queries.graphs.carried import graph_of
from gpulint.analysis.queries.networks.forwards import Forward, forward_of, forwards
from gpulint.analysis.queries.networks.gradients import gradients_of
from gpulint.analysis.queries.networks.trained import frozen
from gpulint.analysis.queries.outcome import outcome
from gpulint.analysis.queries.raises import old_torch
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import arguments, dotted
from gpulint.answers import Answer, Question, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, RelatedNode, Repair, Replace, Report, Rule

_COST = Cost(
    "a backward through all of the generator, for gradients that nothing uses",
    "3.37 instead of 2.70 ms, and 230 instead of 166 MiB where nothing else holds the graph, for 8-layer MLPs; H200, torch 2.11",
)


class GeneratorNotDetached(Rule):
    """
    ## What it does
    Finds discriminator steps whose loss goes back into the generator, where the generator's gradients are zeroed
    before its own optimizer steps.

    Which optimizers have which network is followed from where both are made, into other functions and files; what steps and what
    clears gradients after the backward, further down, in the next round of a loop, in methods that are called and in the caller. Where
    any of it is out of sight, or what the discriminator is given carries the graph of another network as well, nothing is told.

    ## Why is this bad
    The backward runs through the whole generator for gradients that are thrown away. `fake.detach()` stops it there,
    which saves its time; the generator's activations have been saved by then. Only making the sample under `no_grad`
    saves the memory as well, and can be done where the generator's step makes a sample of its own.

    ## What it costs
    | discriminator step | peak | time |
    |---|---|---|
    | not detached | 230 MiB | 3.37 ms |
    | `fake = fake.detach()` | 166 MiB | 2.70 ms |
    | `fake` made under `no_grad` | 166 MiB | 2.68 ms |
    | not detached, `fake` lives on | 232 MiB | 3.32 ms |
    | `discriminator(fake.detach())`, `fake` lives on | 200 MiB | 2.82 ms |
    | made under `no_grad`, `fake` lives on | 168 MiB | 2.79 ms |

    (8-layer MLPs, batch 512 × 1,024; NVIDIA H200, torch 2.11)

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    def train(G: torch.nn.Module, D: torch.nn.Module, loader):
        opt_g = torch.optim.Adam(G.parameters())
        opt_d = torch.optim.Adam(D.parameters())
        for real in loader:
            fake = G(torch.randn(len(real), 64))
            loss_d = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()
            opt_d.zero_grad()
            loss_d.backward()
            opt_d.step()

            loss_g = F.softplus(-D(G(torch.randn(len(real), 64)))).mean()
            opt_g.zero_grad()
            loss_g.backward()
            opt_g.step()
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F

    def train(G: torch.nn.Module, D: torch.nn.Module, loader):
        opt_g = torch.optim.Adam(G.parameters())
        opt_d = torch.optim.Adam(D.parameters())
        for real in loader:
            with torch.no_grad():
                fake = G(torch.randn(len(real), 64))
            loss_d = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()
            opt_d.zero_grad()
            loss_d.backward()
            opt_d.step()

            loss_g = F.softplus(-D(G(torch.randn(len(real), 64)))).mean()
            opt_g.zero_grad()
            loss_g.backward()
            opt_g.step()
    ```

    ## Fix safety
    Where nothing else needs the generator's graph, making the sample under `with torch.no_grad():` is offered; else, and
    where the sample is made in the very call of the discriminator, `.detach()` on what that is given. Both leave the results
    as they are, because the gradients they avoid are zeroed before they are used: safe. Unsafe where code that is not seen
    gets what the discriminator gives, where the generator's gradients are read or clipped in between, and where the
    generator's class is not seen: it may give something that has no `detach()`. Nothing is offered where the same output
    of the discriminator serves another backward, as of the generator, or `autograd.grad`.
    """

    code = "GPU203"
    name = "generator-not-detached"
    severity = Severity.WARNING
    runtime_claim = Claim("forward")
    triggers = tuple((one, b"loss") for one in (b"backward", b"parameters()", b".step(", b"zero_grad"))

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (asked.file.body, *asked.file.functions):
            for made in forwards(asked.evaluator, function):
                for judged in _judged(asked, made):
                    answers = until_refuted(_answers(asked, judged))
                    what = asked.source(judged.given, 200)
                    yield Claimed(judged.judge.call, what, answers, partial(_report, asked, judged))


@dataclass(frozen=True, slots=True)
class _Judged:
    """A network's output `made` that another network, the `judge`, is `given`, and a backward through what that gives."""

    made: Forward
    judge: Forward
    given: Any
    backward: Use


def _judged(asked: Asked, made: Forward) -> Iterator[_Judged]:
    evaluator = asked.evaluator
    own = graph_of(evaluator.value_of(made.call, made.frame))
    if not own:
        return
    for fed in consumers(evaluator, made.call, made.frame, "graph"):
        judge = forward_of(evaluator, fed.node, fed.frame) if fed.role == "fed" else None
        if judge is None or not asked.is_here(fed.frame):
            continue
        if share(origins_of(evaluator, judge.network), origins_of(evaluator, made.network)):
            continue
        if any(forward_of(evaluator, *outer) is not None for outer in fed.frame.chain()):
            continue  # a part of another, which is told
        graphs = [(one, graph_of(evaluator.value_of(one, fed.frame))) for one in arguments(fed.node)]
        given = [one for one, graph in graphs if graph and graph <= own]  # and no other's, which is wanted
        for use in outcome(evaluator, fed.node, fed.frame).wanted if given else ():
            if not _is_of_next_round(use, fed):
                yield _Judged(made, judge, given[0], use)


def _is_of_next_round(backward: Use, fed: Use) -> bool:
    """Whether a backward stands before what it goes through, whose graph its own round has freed."""
    flow = fed.frame.flow
    return backward.frame is fed.frame and position(flow, backward.node) < position(flow, fed.node)


def _answers(asked: Asked, judged: _Judged) -> Iterator[Answer]:
    """On what the claim stands that the gradients of what made the sample are thrown away."""
    evaluator, made, judge, backward = asked.evaluator, judged.made, judged.judge, judged.backward
    place = place_of(evaluator, made.expression, made.frame)
    by = frozen(evaluator, made.network, place)
    if by is not None:
        yield refuted(Question.GRAPH, f"`{_name(made)}` is frozen")
    if any(evaluator.value_of(one, made.frame).graph is not Graph.NONE for one in arguments(made.call)):
        yield refuted(Question.GRAPH, f"what `{_name(made)}` is given may want its gradient")
    if backward.name.rpartition(".")[2] == "grad":
        yield refuted(Question.BACKWARD, "it asks for gradients by name")
    yield proven(Question.BACKWARD, f"this backward goes through `{_name(made)}`", _here(asked, backward))
    own = place_of(evaluator, judge.expression, judge.frame)
    if gradients_of(evaluator, own, (backward,)).fate != "stepped":
        yield refuted(Question.TRAINED, "the network that judges is not stepped after this backward")
    if gradients_of(evaluator, place, (backward,)).fate != "cleared":
        yield refuted(Question.TRAINED, f"`{_name(made)}` may be stepped before its gradients are cleared")
    yield proven(Question.TRAINED, f"the gradients of `{_name(made)}` are cleared before its own step")
    yield from reached(evaluator, judge.frame.function)


def _name(made: Forward) -> str:
    return dotted(made.expression) or "the network"


def _here(asked: Asked, use: Use) -> Any:
    return use.node if asked.is_here(use.frame) else None


def _is_shared(asked: Asked, judged: _Judged) -> bool:
    """Whether something else than this backward goes through what the network that judges gives."""
    wanted = outcome(asked.evaluator, judged.judge.call, judged.judge.frame).wanted
    return any(use.node is not judged.backward.node for use in wanted)


def _made_for_this(asked: Asked, judged: _Judged) -> Any:
    """The statement that makes the sample, where nothing but this backward goes through it; None else."""
    made = judged.made
    statement = made.frame.flow.statement_of(made.call)
    what = outcome(asked.evaluator, made.call, made.frame)
    others = [use for use in what.wanted if use.node is not judged.backward.node]
    alone = not (others or what.unseen or what.returned or what.stored)
    plain = isinstance(statement, ast.Assign) and statement.value is made.call
    old = old_torch(asked.evaluator, asked.file)  # has no `no_grad`
    own_line = plain and not shares_rows(made.frame.flow, statement)
    return statement if alone and own_line and old is None and asked.is_here(made.frame) else None


def _report(asked: Asked, judged: _Judged) -> Report:
    generator, what = _name(judged.made), asked.source(judged.given)
    if _is_shared(asked, judged):
        again = f"let it be made once more, of `{what}.detach()`, with `requires_grad_()` where it is differentiated by that"
        advice = f"a `.detach()` would cut what else is made of the result: {again}"
    elif _made_for_this(asked, judged) is not None:
        advice = f"make it under `no_grad`: that saves the memory of `{generator}`'s activations and the time"
    elif judged.made.call is judged.given:
        advice = f"`.detach()` saves the time, and the memory of `{generator}`'s activations during the rest of the step"
    else:
        advice = f"`.detach()` saves the time; not the memory, as `{generator}`'s graph has another use"
    related = RelatedNode(f"this backward goes through `{generator}`", _here(asked, judged.backward))
    return Report(
        judged.judge.call,
        f"`{what}` carries `{generator}`'s graph into a step of another network: its gradients are thrown away",
        f"`{generator}`'s gradients are zeroed before its optimizer steps; {advice}",
        _COST,
        repair=lambda: _repair(asked, judged),
        subject=asked.source(judged.given, 200),
        related=(related,) if related.at is not None else (),
    )


def _repair(asked: Asked, judged: _Judged) -> Repair | None:
    from gpulint.fix.nodes import call_method

    if _is_shared(asked, judged):
        return None
    doubt = _doubt(asked, judged)
    statement = _made_for_this(asked, judged)
    if statement is None:
        node: Any = asked.node(judged.given)
        change = Replace(node, call_method(node, "detach"))
        return Repair.unless(doubt, "detach what the discriminator is given", (change,))
    return under_no_grad(asked, doubt, "make it under `{}()`", statement)


def _doubt(asked: Asked, judged: _Judged) -> str:
    """Why a cut is not proven to change nothing."""
    evaluator, made = asked.evaluator, judged.made
    unseen = outcome(evaluator, judged.judge.call, judged.judge.frame).unseen
    if unseen:
        return f"`{unseen[0].name or 'a call'}` may differentiate what it is given"
    if gradients_are_read(evaluator, made.network):
        return f"the gradients of `{_name(made)}` are read before they are zeroed"
    seen = isinstance(made.network.ref, Class) or evaluator.calling.made_by(made.network) is not None
    is_tensor = evaluator.value_of(judged.given, judged.judge.frame).kind == "tensor"
    if _made_for_this(asked, judged) is None and not (seen and is_tensor):
        return f"`{_name(made)}` may give something else than a tensor"
    return ""

"""`torch.autograd.grad(…, create_graph=True)` whose gradients are only looked at: the graph that it makes of them is for nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.suspicion import Suspicion
from gpulint.rules.detect.unseen.fates import Fate, fate

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import called, with_words
from gpulint.analysis.questions.repeats.once import runs_once
from gpulint.analysis.questions.size.forwards import ForwardSizes
from gpulint.answers import Answer, Question, left_open, proven, refuted
from gpulint.rule import Cost

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DIFFERENTIATES = frozenset({"grad", "backward", "manual_backward", "jacobian", "hessian", "vjp", "hvp"})


def cut_gradients(file: FileAnalysis) -> list[Suspicion]:
    """The calls that make a graph of gradients, and those of helpers that do, where only numbers are made of them: the first
    in a function, which says it of the others as well."""
    found: list[tuple[ir.Function, Suspicion]] = []
    for function in with_words(file, frozenset({"grad"})):
        makers = [call for _, call in ir.calls(function.body) if _makes_graph(file, call)]
        for call in makers:
            becomes = fate(file, function, call)
            found.append((function, _suspicion(file, function, call, becomes)))
            if becomes.returned and not becomes.backward:
                found += _of_callers(file, function)
    first: dict[ir.Function, Suspicion] = {}
    for function, one in found:
        if not one.is_refuted:
            first.setdefault(function, one)
    return [one for function, one in found if one.is_refuted or first[function] is one]


def _makes_graph(file: FileAnalysis, call: ir.Call) -> bool:
    value = call.keyword("create_graph")
    known = file.names.qualify(call.func.path or "") == "torch.autograd.grad"
    return known and isinstance(value, ir.Const) and value.value is True


def _of_callers(file: FileAnalysis, helper: ir.Function) -> Iterator[tuple[ir.Function, Suspicion]]:
    """The calls of a function that hands out gradients with their graph."""
    for caller in with_words(file, frozenset({helper.name})):
        for _, call in ir.calls(caller.body):
            if call.method == helper.name and called(file, caller, call) is helper:
                yield caller, _suspicion(file, caller, call, fate(file, caller, call))


def _suspicion(file: FileAnalysis, function: ir.Function, call: ir.Call, becomes: Fate) -> Suspicion:
    return Suspicion(
        call,
        call.func.path or call.method,
        f"`{call.func.path or call.method}` makes a graph of the gradients, and only numbers are made of them",
        "`create_graph=True` keeps the forward's graph and adds one of the backward, for a second backward that never comes",
        Cost(
            "all that the forward has saved, and as much again for the backward, until the gradients go",
            "8.03 instead of 4.28 GiB at the peak for the input's gradient of an 8-layer MLP, 65,536 × 1,024; H200, torch 2.11",
        ),
        tuple(_answers(file, function, call, becomes)),
    )


def _answers(file: FileAnalysis, function: ir.Function, call: ir.Call, becomes: Fate) -> Iterator[Answer]:
    if becomes.backward or becomes.returned or becomes.stored:
        yield refuted(Question.BACKWARD, "whoever gets the gradients may go backward through them")
        return
    if _is_differentiated(function, call, becomes):
        yield refuted(Question.BACKWARD, "they are differentiated once more")
        return
    if not becomes.only_read:
        yield refuted(Question.READS, "what becomes of the gradients is not shown")
        return
    if becomes.by_name is not None:
        yield left_open(
            Question.READS, "only its name says that what gets them looks at them", becomes.by_name
        )
    else:
        yield proven(Question.READS, "only numbers and pictures are made of the gradients")
    known = file.facts.get(function)
    yield from runs_once(function, bool(known is not None and any(one.loops for one in known.forwards)))
    yield from ForwardSizes(file).of_graph(known.forwards if known is not None else ())


def _is_differentiated(function: ir.Function, call: ir.Call, becomes: Fate) -> bool:
    """Whether something else asks for derivatives of what is made of the gradients: `grad(g.sum(), x)` gives a tensor, too."""
    return any(
        other is not call
        and other.method in _DIFFERENTIATES
        and any(part.path in becomes.names for part in ir.walk(other))
        for _, other in ir.calls(function.body)
    )

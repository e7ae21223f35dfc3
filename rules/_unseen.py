"""What GPU201 says about evaluations whose network, or whose end, is out of sight: one report a function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING

from gpulint.rules._no_grad import no_grad
from gpulint.rules.detect.unseen.evaluations import Evaluation, UnseenEvaluations

from gpulint.analysis.questions.grad.old_torch import predates_no_grad
from gpulint.analysis.questions.size.forwards import ForwardSizes
from gpulint.answers import Answer, Considered, Question, Verdict, doubts_of
from gpulint.rule import Cost, RelatedNode, Repair, Report, Wrap

if TYPE_CHECKING:
    from gpulint.analysis.code import ir
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import Forward, FunctionFacts

# What another look may answer otherwise: an export that only looks like one, a result whose reader is not seen, a
# backward that runs beside it.
_ASKED_AGAIN = frozenset({Question.READS, Question.REPEATS, Question.MEANT, Question.BACKWARD})
_EXPORTING = frozenset({"jit", "onnx", "export", "trace_module", "script"})  # `np.trace` is none


def unseen_considered(facts: FileFacts) -> Iterator[Considered]:
    """The calls whose network is out of sight, with what their questions were answered."""
    unseen = facts.ask(UnseenEvaluations)
    for function in facts.module.functions:
        for one in unseen.considered(function):
            yield Considered(one.run.call, one.run.path, one.answers)


def unseen_reports(
    facts: FileFacts, told: Set[ir.Function], refused: dict[ir.Function, list[Forward]]
) -> Iterator[Report]:
    """A report for each function in which nothing is told yet, of what is least in doubt. `refused` are the forwards that
    the rule itself could not make out."""
    unseen = facts.ask(UnseenEvaluations)
    causes = set(told)
    found: list[tuple[ir.Function, list[Evaluation]]] = []
    for function in facts.module.functions:
        if function in told:
            continue
        exports = facts.analysis.evidence[function].words & _EXPORTING
        again = [unseen.of_forward(function, one) for one in refused.get(function, ()) if not exports]
        ones = [one for one in (*unseen.considered(function), *again) if one is not None and one.holds]
        if ones:
            causes.add(function)
            found.append((function, sorted(ones, key=lambda one: one.sight.order)))
    for function, ones in found:
        if _is_helper_of(facts, function, causes):
            continue
        left = [one for one in ones if one.run.callee is None or one.run.callee not in causes]
        left = [one for one in left if not _is_wasted_in_a_step(facts, one)]
        if left:
            fewest = min(len(one.doubts) for one in left)
            yield _report(facts, function, next(one for one in left if len(one.doubts) == fewest), left)


def _is_wasted_in_a_step(facts: FileFacts, one: Evaluation) -> bool:
    """Whether GPU202 tells of the same call, and is as sure of it."""
    from gpulint.rules.detect.wasted import wasted_forwards

    same = [wasted.forward for wasted in facts.ask(wasted_forwards) if wasted.forward.call is one.run.call]
    if not same or one.doubts or _of_size(facts, one):
        return bool(same)
    sizes = facts.ask(ForwardSizes)
    return not any(
        True for _ in sizes.of_step(one.function, same[0].call, same[0].module.path, same[0].module.network)
    )


def _is_helper_of(facts: FileFacts, function: ir.Function, causes: Set[ir.Function]) -> bool:
    """Whether all that the file calls a function for is told: one guard in its callers mends both."""
    callers = {
        other
        for other, evidence in facts.analysis.evidence.items()
        if function.name in evidence.called and other is not function
    }
    return bool(callers) and callers <= causes


def may_be_asked_again(forward: Forward, called: Set[str], answers: tuple[Answer, ...]) -> bool:
    """Whether a forward is not told for something that the text around it may answer otherwise."""
    last = answers[-1] if answers else None
    if last is None or last.verdict is not Verdict.REFUTED or last.question not in _ASKED_AGAIN:
        return False
    if last.question is Question.MEANT and not called & {"trace", "export"}:
        return False  # nothing that could only look like an export
    if last.question is not Question.MEANT and forward.function.name == "<module>" and not forward.loops:
        return False  # once in a script
    if last.question in (Question.MEANT, Question.REPEATS):
        return forward.mode.evaluating and bool(forward.loops)
    return True


def _report(facts: FileFacts, function: ir.Function, one: Evaluation, others: Sequence[Evaluation]) -> Report:
    what = facts.called(one.run.call)
    if one.beside_training and any(answer.question is Question.REACHED for answer in one.answers):
        where, reason = "in every phase", "backward follows in the phase that trains, and in no other"
    elif one.beside_training:
        where, reason = "for a look at it", "its result is only looked at, and no backward goes through it"
    else:
        where, reason = "in what evaluates", "no backward is seen to follow"
    known: FunctionFacts | None = facts.analysis.facts.get(function)
    return Report(
        one.run.call,
        f"`{what}` runs with grad enabled {where}: every activation is saved for a backward that never comes",
        reason,
        Cost(
            "every activation of this forward, for as long as its result is held",
            "1.36 times the forward's peak, 1.56 against 1.15 GiB for a 4-layer language model; H200, torch 2.11",
        ),
        unless_guarded=known.only_called_elsewhere if known is not None else _entry(function),
        repair=lambda: _repair(facts, one),
        doubts=(*one.doubts, *doubts_of(facts.ask(predates_no_grad)), *_of_size(facts, one)),
        subject=one.run.path,
        related=tuple(RelatedNode("so may this", other.run.call) for other in others if other is not one),
    )


def _of_size(facts: FileFacts, one: Evaluation) -> tuple[str, ...]:
    sizes = facts.ask(ForwardSizes)
    found = [*sizes.doubts(one.function, one.run.call, one.run.path, helper=one.run.callee)]
    if one.run.callee is not None:  # a helper, which is given the network
        for given in (*one.run.call.args, *(value for _, value in one.run.call.keywords)):
            if given.path is not None and facts.analysis.treated_as_module(one.function, given.path):
                found += sizes.of_network(one.function, given.path)
    return doubts_of(found)


def _entry(function: ir.Function) -> tuple[ir.Function, ...]:
    return () if function.name == "<module>" else (function,)


def _repair(facts: FileFacts, one: Evaluation) -> Repair | None:
    from gpulint.analysis.questions.grad.guarding import Guarding
    from gpulint.fix.nodes import no_grad_with

    statement = one.sight.statement
    if one.beside_training and any(answer.question is Question.REACHED for answer in one.answers):
        return None  # the phase that trains runs through it as well
    cover = facts.ask(Guarding).statement(one.function, statement)
    spelled = no_grad(facts)
    if cover is None or spelled is None:
        return None
    name, imports = spelled
    why = cover.doubt or f"what `{one.run.path}` gives may be differentiated where nobody sees it"
    change = Wrap((statement.node,), no_grad_with(name))
    return Repair.unless(why, f"run it under `{name}()`", (change, *imports))

"""Trainings for which Python's collector is switched off: what waits in reference cycles on the GPU waits for ever."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import qualified, with_words
from gpulint.analysis.questions.reached.dead import is_dead
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.findings import Severity
from gpulint.rule import Cost, Remove, Repair

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Who calls one of these besides decides for himself when to collect.
_DECIDES = frozenset({"gc.collect", "gc.enable", "gc.freeze", "gc.set_threshold"})


def collectors_off(file: FileAnalysis) -> list[Suspicion]:
    """The calls of `gc.disable()` of a file."""
    return [
        _suspicion(file, function, statement, call)
        for function in with_words(file, frozenset({"disable"}))
        for statement, call in ir.calls(function.body)
        if qualified(file, function, call.func.path) == "gc.disable"
        and not is_dead(file, function, statement)
    ]


def _suspicion(file: FileAnalysis, function: ir.Function, statement: ir.Stmt, call: ir.Call) -> Suspicion:
    return Suspicion(
        call,
        "gc.disable",
        "without the collector, tensors in reference cycles stay on the GPU until the program ends",
        "nothing collects by hand: `gc.collect()` now and then, or `gc.freeze()` after the set-up, is as quick",
        Cost(
            "whatever tensors wait in reference cycles, more with every step that makes some",
            "28 MiB after 16 steps whose outputs end in cycles, none with the collector on; H200, torch 2.11",
        ),
        until_refuted(_answers(file, function)),
        Severity.INFO,
        repair=partial(_repair, statement),
    )


def _answers(file: FileAnalysis, function: ir.Function) -> Iterator[Answer]:
    if any(
        qualified(file, other, call.func.path) in _DECIDES
        for other in with_words(file, frozenset(name.partition(".")[2] for name in _DECIDES))
        for _, call in ir.calls(other.body)
    ):
        yield refuted(Question.MEANT, "the program collects when it wants to")
    loops = [loop for loop in file.loops.values() if loop.backwards or loop.steps]
    if not loops and not any(evidence.backward for evidence in file.evidence.values()):
        yield refuted(Question.REPEATS, "nothing trains in this file")
    if any(loop.function is function for loop in loops):
        yield proven(Question.REACHED, "the loop beside it trains, and nothing in it collects")
    else:
        yield left_open(Question.REACHED, "whether the training collects in between is not in sight")
    yield left_open(
        Question.OUTLIVES, "whether anything in the steps makes reference cycles, the code does not say"
    )


def _repair(statement: ir.Stmt) -> Repair:
    why = "the collector runs in the midst of steps then, as Python sees fit"
    return Repair("unsafe", "leave the collector on", (Remove(statement.node),), why)

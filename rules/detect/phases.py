"""Where one phase of an epoch ends and another begins: validations and checkpoints after training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import called, qualified
from gpulint.analysis.values.values import Grad

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import FunctionFacts
    from gpulint.analysis.file.program import FileAnalysis


@dataclass(slots=True)
class PhaseEnd:
    """The last statement of a validation or of a checkpoint in an epoch, after which training goes on."""

    stmt: ir.Stmt
    what: str


def phase_ends(file: FileAnalysis) -> list[PhaseEnd]:
    """The validations and checkpoints at an epoch's end after which nobody empties the cache."""
    functions = file.function_facts
    facts = {item.function: item for item in functions}
    return [end for function in facts for end in _Epochs(file, function, facts).run()]


class _Epochs:
    def __init__(
        self, file: FileAnalysis, function: ir.Function, facts: dict[ir.Function, FunctionFacts]
    ) -> None:
        self.file = file
        self.function = function
        self.facts = facts

    def run(self) -> Iterator[PhaseEnd]:
        for statement in ir.statements(self.function.body):
            if isinstance(statement, (ir.For, ir.While)) and not self.is_step(statement):
                end = self.epoch(statement.body)
                if end is not None:
                    yield end

    def epoch(self, body: list[ir.Stmt]) -> PhaseEnd | None:
        """The last phase of an epoch's body: after a training phase, before nothing that cleans up."""
        trained = False
        last: PhaseEnd | None = None
        for statement in body:
            if self.trains(statement):
                trained, last = True, None
            elif trained and self.validates(statement):
                last = PhaseEnd(statement, "validation")
            elif trained and self.saves(statement):
                last = PhaseEnd(statement, "checkpoint")
            if any(call.method in ("empty_cache", "clear") for _, call in ir.calls([statement])):
                return None
            if any(self.cleans(call) for _, call in ir.calls([statement])):
                return None
        return last

    def is_step(self, loop: ir.Stmt) -> bool:
        """Whether the loop itself takes optimizer steps: then what follows them is no phase of its own."""
        known = self.file.loops.get(id(loop))
        return known is not None and bool(known.steps)

    def loops_of(self, statement: ir.Stmt) -> list[ir.Stmt]:
        return [inner for inner in ir.statements([statement]) if isinstance(inner, (ir.For, ir.While))]

    def trains(self, statement: ir.Stmt) -> bool:
        for loop in self.loops_of(statement):
            known = self.file.loops.get(id(loop))
            if known is not None and (known.backwards or known.steps):
                return True
        return any(facts.has_backward or facts.steps for facts in self.callees(statement))

    def validates(self, statement: ir.Stmt) -> bool:
        for loop in self.loops_of(statement):
            known = self.file.loops.get(id(loop))
            if known is not None and known.forwards and not known.backwards and not known.steps:
                return True
        return any(
            facts.forwards and not facts.has_backward and any(f.loops for f in facts.forwards)
            and (facts.calls_eval or facts.grad_at_entry is Grad.DISABLED or facts.all_evaluation)
            for facts in self.callees(statement)
        )  # fmt: skip

    def saves(self, statement: ir.Stmt) -> bool:
        return any(
            qualified(self.file, self.function, call.func.path) == "torch.save"
            for _, call in ir.calls([statement])
        )

    def cleans(self, call: ir.Call) -> bool:
        callee = called(self.file, self.function, call)
        return callee is not None and "empty_cache" in self.file.evidence[callee].words

    def callees(self, statement: ir.Stmt) -> Iterator[FunctionFacts]:
        for _, call in ir.calls([statement]):
            callee = called(self.file, self.function, call)
            if callee is not None and callee in self.facts:
                yield self.facts[callee]

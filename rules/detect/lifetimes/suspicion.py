"""A claim with its answers, before it is told: what the detectors of doubtful mistakes give to their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gpulint.analysis.code import ir
from gpulint.answers import Answer, Considered, Verdict, doubts_of
from gpulint.findings import Severity
from gpulint.rule import Cost, RelatedNode, Repair, Report


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What a detector claims about one place, and what the questions that the claim stands on were answered."""

    at: ir.Part
    subject: str
    message: str
    reason: str
    cost: Cost | str
    answers: tuple[Answer, ...]
    severity: Severity = Severity.WARNING
    related: tuple[RelatedNode, ...] = ()
    repair: Callable[[], Repair | None] | None = None
    cause: int = 0  # the row of what brings it about: where that is told already, this is not

    @property
    def is_refuted(self) -> bool:
        return any(answer.verdict is Verdict.REFUTED for answer in self.answers)

    @property
    def considered(self) -> Considered:
        return Considered(self.at, self.subject, self.answers)

    @property
    def report(self) -> Report:
        """As it is told, with each open question as a doubt."""
        return Report(
            self.at,
            self.message,
            self.reason,
            self.cost,
            self.severity,
            self.repair,
            self.related,
            doubts=doubts_of(self.answers),
            subject=self.subject,
        )


def told(suspicions: Iterable[Suspicion], rows: set[int]) -> Iterator[Report]:
    """The reports of what is not refuted, one for each row, and none where the rule has already told something of it."""
    for suspicion in suspicions:
        if not suspicion.is_refuted and not rows & {suspicion.at.row, suspicion.cause}:
            rows.add(suspicion.at.row)
            yield suspicion.report


def considered(suspicions: Iterable[Suspicion]) -> Iterator[Considered]:
    """The claims with all their answers."""
    return (suspicion.considered for suspicion in suspicions)

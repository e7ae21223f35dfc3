"""What the whole program says to a claim, whichever rule makes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.answers import Answer, doubts_of

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.rule import Place, Report, Rule


def said_by_program(facts: FileFacts, rule: type[Rule], place: Place) -> Iterator[Answer]:
    """What leaves it open whether a mistake at a place of a file costs anybody anything."""
    from gpulint.analysis.questions.reached.uncalled import Uncalled

    function = facts.function_at(place) if rule.costs_when_run else None
    if function is not None:
        yield from facts.ask(Uncalled).doubt(function)


def with_doubts_of_program(facts: FileFacts, rule: type[Rule], report: Report) -> Report:
    """The report with what the whole program leaves open added to its own doubts."""
    more = doubts_of(said_by_program(facts, rule, report.at))
    return replace(report, doubts=(*report.doubts, *more)) if more else report

"""Why a line is reported, or is not: every claim that was considered there, with the answers to its questions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpulint.answers import Answer, Considered, Question, refuted
from gpulint.findings import Confidence, Finding
from gpulint.linter import analysed, excused, lint_text
from gpulint.rule import Report, Rule, RuleSet, node_of, origin_of

if TYPE_CHECKING:
    from gpulint.analysis.code import ir
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.project import Project
    from gpulint.positions import Spans
    from gpulint.rule import Place

TOLD, DOUBTED, SILENCED, SILENT = "told", "told as a doubt", "silenced by a comment", "not told"
ELSEWHERE = "told with another of the same cause"


@dataclass(frozen=True, slots=True)
class Explained:
    """One claim: where it begins, what it is about, what became of it and why. Of a rule that does not say what it rejects
    there are only the reports, without answers."""

    code: str
    name: str
    subject: str
    filename: str
    row: int
    column: int
    outcome: str
    answers: tuple[tuple[Answer, int], ...]  # each with its row
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """As `gpulint explain --output-format json` writes it."""
        return {
            "code": self.code,
            "name": self.name,
            "subject": self.subject,
            "filename": self.filename,
            "location": {"row": self.row, "column": self.column},
            "outcome": self.outcome,
            "message": self.message,
            "answers": [
                {
                    "question": answer.question.value,
                    "verdict": answer.verdict.value,
                    "clause": answer.clause,
                    "filename": self.filename,
                    "row": row,
                }
                for answer, row in self.answers
            ],
        }


def explain_text(
    text: str, filename: str, rules: RuleSet, project: Project | None = None, row: int | None = None
) -> list[Explained]:
    """What the rules considered in a file, or in one of its rows alone (an expression of several rows is in each of them).

    Raises `SourceError` where the text does not parse.
    """
    from gpulint.positions import Spans

    if project is None and os.path.isfile(filename):
        from gpulint.analysis.file.project import Project

        project = Project()
    found = lint_text(text, filename, replace(rules, confidence=Confidence.LOW), project)
    facts = analysed(text, filename, project)
    file = _File(facts, Spans(facts.tree, text), filename, project, found)
    claims = (pair for rule in rules.rules for pair in _of_rule(rule, rules, file))
    explained = [one for one, last in claims if row is None or one.row <= row <= last]
    return sorted(explained, key=lambda one: (one.row, one.column, one.code))


@dataclass(frozen=True, slots=True)
class _File:
    facts: FileFacts
    spans: Spans
    filename: str
    project: Project | None
    findings: list[Finding]

    def row_of(self, at: ir.Part | None, otherwise: int) -> int:
        return self.spans.of(at.node)[0].row if at is not None else otherwise


def _of_rule(rule: type[Rule], rules: RuleSet, file: _File) -> Iterator[tuple[Explained, int]]:
    """Each claim of a rule's, with the last row of what it is about."""
    options = rules.options.get(rule.code, {})
    reports = {id(origin_of(report.at)): report for report in rule().check(file.facts, options)}
    for considered in rule().considers(file.facts, options):
        yield _claim(rule, considered, reports.pop(id(origin_of(considered.at)), None), file)
    for report in reports.values():
        yield _claim(rule, Considered(report.at, "", ()), report, file)


def _claim(
    rule: type[Rule], considered: Considered, report: Report | None, file: _File
) -> tuple[Explained, int]:
    start, end = file.spans.of(node_of(considered.at))
    answers = (*considered.answers, *_taken_back(considered.at, report, rule, file))
    finding = next(
        (f for f in file.findings if (f.code, f.line, f.column) == (rule.code, start.row, start.column)), None
    )
    outcome = SILENT
    if finding is not None:
        outcome = TOLD if finding.confidence is Confidence.HIGH else DOUBTED
    elif report is not None and len(answers) == len(considered.answers):
        outcome = SILENCED
    elif considered.answers and Considered(considered.at, "", answers).confidence is not None:
        outcome = ELSEWHERE
    rows = tuple((answer, file.row_of(answer.at, start.row)) for answer in answers)
    subject = considered.subject
    message = report.message if report is not None else ""
    explained = Explained(
        rule.code, rule.name, subject, file.filename, start.row, start.column, outcome, rows, message
    )
    return explained, end.row


def _taken_back(at: Place, report: Report | None, rule: type[Rule], file: _File) -> Iterator[Answer]:
    """What is known only after a rule has spoken: tests, and callers in other files."""
    if (file.facts.is_test or file.facts.passes_over(at)) and not rule.in_tests:
        yield refuted(Question.REACHED, "it is test code, or computes with another framework")
    if report is not None and excused(report, file.filename, file.project):
        yield refuted(Question.GRAD, "every caller in the project switches grad off")

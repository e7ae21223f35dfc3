"""Why a line is reported, or is not: every claim that was considered there, with the answers to its questions."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpulint.answers import Answer, Considered, LookedNoFurther, Question, Verdict, as_far, refuted
from gpulint.findings import Confidence, Finding
from gpulint.lint.linter import (
    Text,
    claimed,
    found_by,
    linted,
    project_of,
    reported,
    said_by_callers,
    said_by_program,
)
from gpulint.lint.trees import SourceError, deep_stack
from gpulint.rule import Report, Rule, RuleSet, node_of, origin_of, row_of
from gpulint.source.notebooks import Notebook, NotebookError, is_notebook, read_notebook

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.project import Project
    from gpulint.answers import Place
    from gpulint.lint.cells import Places
    from gpulint.source.positions import Spans

TOLD, SILENCED, SILENT = "told", "silenced by a comment", "not told"
ELSEWHERE = "told with another of the same cause"
OUTCOMES = {
    Confidence.HIGH: TOLD,
    Confidence.MEDIUM: "told with --confidence medium",
    Confidence.LOW: "told with --confidence low",
}
# What an answer says to a claim, for people.
SIGNS = {Verdict.PROVEN: "yes", Verdict.REFUTED: "no", Verdict.OPEN: "open"}


@dataclass(frozen=True, slots=True)
class Because:
    """An answer to one of a claim's questions, with the line that says so; in a notebook rows count in a cell. `filename` is
    the other file that the line stands in, if it does."""

    answer: Answer
    row: int
    cell: int | None = None
    filename: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """One claim: where it stands, what it is about, what became of it and why. Of a rule that does not say what it rejects
    there are only the reports, without answers."""

    code: str
    name: str
    subject: str
    filename: str
    row: int
    column: int
    end_row: int
    outcome: str
    answers: tuple[Because, ...]
    message: str = ""
    cell: int | None = None

    def is_at(self, row: int) -> bool:
        """Whether it stands in this row: an expression of several rows is in each of them."""
        return self.row <= row <= self.end_row

    def to_json(self) -> dict[str, Any]:
        """As `gpulint explain --output-format json` writes it."""
        return {
            "code": self.code,
            "name": self.name,
            "subject": self.subject,
            "filename": self.filename,
            "cell": self.cell,
            "location": {"row": self.row, "column": self.column},
            "outcome": self.outcome,
            "message": self.message,
            "answers": [
                {
                    "question": because.answer.question.value,
                    "verdict": because.answer.verdict.value,
                    "clause": because.answer.clause,
                    "filename": because.filename or self.filename,
                    "cell": because.cell,
                    "row": because.row,
                }
                for because in self.answers
            ],
        }


def line_of(because: Because, one: Explained) -> str:
    """The line that an answer names, in brackets; nothing where it is the claim's own."""
    if because.filename:
        return f" ({because.filename}:{because.row})"
    if (because.cell, because.row) == (one.cell, one.row):
        return ""
    cell = f"cell {because.cell}, " if because.cell != one.cell else ""
    return f" ({cell}line {because.row})"


def explain_text(text: str, filename: str, rules: RuleSet, project: Project | None = None) -> list[Explained]:
    """What the rules considered in a file or notebook, by place. Raises `SourceError` where it cannot be analysed."""
    if is_notebook(filename):
        return _explain_notebook(text, filename, rules, project)
    return explain_module(text, filename, rules, project)[0]


def notebook_of(text: str) -> Notebook:
    """The notebook that a file's text spells. Raises `SourceError` where it is none in Python."""
    try:
        notebook = read_notebook(text)
    except NotebookError as error:
        raise SourceError(error.message, error.line, error.column) from None
    if notebook.foreign:
        raise SourceError(notebook.foreign)
    return notebook


def _explain_notebook(text: str, filename: str, rules: RuleSet, project: Project | None) -> list[Explained]:
    from gpulint.lint.cells import Places, join

    module = join(notebook_of(text))
    places = Places(module.text)
    claims, _ = explain_module(module.text, filename, rules, project)
    return [_in_cell(one, places) for one in claims]


def _in_cell(one: Explained, places: Places) -> Explained:
    cell, row = places.cell(one.row)
    answers = (_because_in_cell(because, places) for because in one.answers)
    return replace(one, cell=cell, row=row, end_row=one.end_row - one.row + row, answers=tuple(answers))


def _because_in_cell(because: Because, places: Places) -> Because:
    if because.filename:
        return because
    cell, row = places.cell(because.row)
    return replace(because, cell=cell, row=row)


def explain_module(
    text: str, filename: str, rules: RuleSet, project: Project | None = None
) -> tuple[list[Explained], list[Finding]]:
    """What the rules considered in a module, by place, and what `lint_text` finds there with any confidence. Raises
    `SourceError` where it cannot be analysed."""
    from gpulint.source.positions import Spans

    project = project or project_of(filename)
    given = linted(text, filename, replace(rules, confidence=Confidence.LOW), project)
    looked, found = given.text, given.findings
    try:
        with deep_stack():
            file = _File(looked, Spans(looked.tree, text), filename, project, found)
            claims = [one for rule in rules.rules for one in _of_rule(rule, rules, file)]
    except RecursionError:
        raise SourceError("the file is nested too deeply to be analysed") from None
    looked.release()
    return sorted(claims, key=lambda one: (one.row, one.column, one.code)), found


@dataclass(frozen=True, slots=True)
class _File:
    looked: Text
    spans: Spans
    filename: str
    project: Project | None
    findings: list[Finding]

    def because(self, answer: Answer, otherwise: int) -> Because:
        """An answer with its line; `otherwise` is the claim's own."""
        if answer.at is None:
            return Because(answer, otherwise)
        filename = answer.filename
        if isinstance(answer.at, ast.AST) and not hasattr(answer.at, "node_of_libcst"):
            filename = filename or self.looked.asked.path_of(answer.at)
            if not filename:
                return Because(answer, row_of(answer.at))
        if filename:  # libcst has not read that file
            return Because(answer, row_of(answer.at), filename=os.path.relpath(filename))
        return Because(answer, self.spans.of(node_of(answer.at))[0].row)


def _of_rule(rule: type[Rule], rules: RuleSet, file: _File) -> Iterator[Explained]:
    """Each claim of a rule's."""
    options = rules.options.get(rule.code, {})
    if rule.asks:
        for claim in claimed(file.looked, rule, options):
            considered = Considered(claim.at, claim.subject, claim.answers)
            report = reported(claim, rule)
            skipped = file.looked.asked.is_test and not rule.in_tests
            more = (refuted(Question.REACHED, "it is test code"),) if skipped else ()
            yield _explained(rule, considered, report, more, file)
        return
    facts = file.looked.facts
    reports = {id(origin_of(report.at)): report for report in found_by(rule, facts, options)}
    for considered in _considered(rule, facts, options):
        yield _claim(rule, considered, reports.pop(id(origin_of(considered.at)), None), file)
    for report in reports.values():
        yield _claim(rule, Considered(report.at, "", ()), report, file)


def _considered(rule: type[Rule], facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
    try:
        yield from rule().considers(facts, options)
    except LookedNoFurther:
        return  # which the rule's reports say


def _claim(rule: type[Rule], considered: Considered, report: Report | None, file: _File) -> Explained:
    more = (
        *(
            as_far(said_by_program(file.looked.facts, rule, considered.at))
            if considered.confidence or report
            else ()
        ),
        *_taken_back(considered.at, report, rule, file),
    )
    return _explained(rule, considered, report, more, file)


def _explained(
    rule: type[Rule], considered: Considered, report: Report | None, more: tuple[Answer, ...], file: _File
) -> Explained:
    """A claim with all that was answered, and what became of it."""
    start, end = file.spans.of(node_of(considered.at))
    answers = (*considered.answers, *more)
    finding = next(
        (f for f in file.findings if (f.code, f.line, f.column) == (rule.code, start.row, start.column)), None
    )
    outcome = SILENT
    if finding is not None:
        outcome = OUTCOMES[finding.confidence]
    elif report is not None and not any(answer.verdict is Verdict.REFUTED for answer in more):
        outcome = SILENCED
    elif considered.answers and Considered(considered.at, "", answers).confidence is not None:
        outcome = ELSEWHERE
    return Explained(
        rule.code,
        rule.name,
        considered.subject,
        file.filename,
        start.row,
        start.column,
        end.row,
        outcome,
        tuple(file.because(answer, start.row) for answer in answers),
        report.message if report is not None else "",
    )


def _taken_back(at: Place, report: Report | None, rule: type[Rule], file: _File) -> Iterator[Answer]:
    """What is known only after a rule has spoken: tests, and callers in other files."""
    facts = file.looked.facts
    if (facts.is_test or facts.passes_over(at)) and not rule.in_tests:
        yield refuted(Question.REACHED, "it is test code, or computes with another framework")
    if report is not None:
        yield from as_far(said_by_callers(report, file.filename, file.project))

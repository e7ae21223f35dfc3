"""Why a line is reported, or is not: every claim that was considered there, with the answers to its questions."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpulint.answers import Answer, Question, Verdict, confidence_of, refuted
from gpulint.findings import Confidence, Finding
from gpulint.lint.linter import Text, claimed, linted, project_of, reported
from gpulint.lint.trees import SourceError, deep_stack
from gpulint.rule import Claimed, Rule, RuleSet, node_of
from gpulint.source.notebooks import Notebook, NotebookError, is_notebook, read_notebook

if TYPE_CHECKING:
    from gpulint.analysis.project.disk import Project
    from gpulint.lint.cells import Places
    from gpulint.source.positions import Spans

TOLD, SILENCED, SILENT = "told", "silenced by a comment", "not told"
ELSEWHERE = "told with another of the same cause"
OUTCOMES = {
    Confidence.HIGH: TOLD,
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
    """One claim: where it stands, what it is about, what became of it and why."""

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
                return Because(answer, _row(answer.at))
        if filename:  # libcst has not read that file
            return Because(answer, _row(answer.at), filename=os.path.relpath(filename))
        return Because(answer, self.spans.of(node_of(answer.at))[0].row)


def _row(place: Any) -> int:
    return getattr(place, "lineno", 1)


def _of_rule(rule: type[Rule], rules: RuleSet, file: _File) -> Iterator[Explained]:
    """Each claim of a rule's."""
    skipped = file.looked.asked.is_test and not rule.in_tests
    more = (refuted(Question.REACHED, "it is test code"),) if skipped else ()
    for claim in claimed(file.looked, rule, rules.options.get(rule.code, {})):
        yield _explained(rule, replace(claim, answers=(*claim.answers, *more)), file)


def _explained(rule: type[Rule], claim: Claimed, file: _File) -> Explained:
    """A claim with all that was answered, and what became of it."""
    start, end = file.spans.of(node_of(claim.at))
    report = reported(claim, rule)
    finding = next(
        (f for f in file.findings if (f.code, f.line, f.column) == (rule.code, start.row, start.column)), None
    )
    outcome = SILENT
    if finding is not None:
        outcome = OUTCOMES[finding.confidence]
    elif report is not None:
        outcome = SILENCED
    elif confidence_of(claim.answers) is not None:
        outcome = ELSEWHERE
    return Explained(
        rule.code,
        rule.name,
        claim.subject,
        file.filename,
        start.row,
        start.column,
        end.row,
        outcome,
        tuple(file.because(answer, start.row) for answer in claim.answers),
        report.message if report is not None else "",
    )

"""Why a line is reported, or is not: every claim that was considered there, with the answers to its questions."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gpulint.analysis.domain.values import Graph
from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.project.file import quoted
from gpulint.answers import Answer, Question, Verdict, confidence_of, refuted
from gpulint.findings import Confidence, Finding
from gpulint.lint.linter import Text, claimed, linted, project_of, reported
from gpulint.lint.trees import deep_stack
from gpulint.rule import Claimed, Rule, RuleSet, node_of
from gpulint.source.files import is_notebook
from gpulint.source.notebooks import Notebook, NotebookError, read_notebook
from gpulint.source.syntax import SourceError

if TYPE_CHECKING:
    from gpulint.analysis.domain.values import Value
    from gpulint.analysis.project.disk import Project
    from gpulint.lint.cells import Places
    from gpulint.source.positions import Spans

_Placed = TypeVar("_Placed", "Because", "Seen")
TOLD, SILENCED, SILENT = "told", "silenced by a comment", "not told"
ELSEWHERE = "told with another of the same cause"
OUTCOMES = {
    Confidence.HIGH: TOLD,
    Confidence.LOW: "told with --confidence low",
}
# What is done with a value, in words; `{}` is by what name.
_USED = {
    "reads": "read by `{}`",
    "cuts": "cut off its graph by `{}`",
    "backward": "gone backward through",
    "method": "asked for `{}`",
    "attribute": "asked for `{}`",
    "set": "set by `{}`",
    "given": "given to `{}`",
    "optimized": "given to an optimizer",
    "written": "written into",
    "too much": "followed no further",
    "computed": "computed with",
    "fed": "given to a network",
    "bound": "given a name",
}
# What an answer says to a claim, for people.
_SIGNS = {Verdict.PROVEN: "yes", Verdict.REFUTED: "no", Verdict.OPEN: "open"}


@dataclass(frozen=True, slots=True)
class Because:
    """An answer to one of a claim's questions, with the line that says so; in a notebook rows count in a cell. `filename` is
    the other file that the line stands in, if it does."""

    answer: Answer
    row: int
    cell: int | None = None
    filename: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen of what a claim is about, with the line that shows it: its `value`, where that was `made`, what is taken for so of
    it (`assumed`), and how it is `used`, wherever it goes."""

    topic: Literal["value", "made", "assumed", "used"]
    clause: str
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
    seen: tuple[Seen, ...] = ()

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
            "seen": [asdict(replace(one, filename=one.filename or self.filename)) for one in self.seen],
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


def sign_of(answer: Answer) -> str:
    """An answer in one word: `note` where the claim holds and it says that nothing shows that it matters."""
    return "note" if answer.minor and answer.verdict is Verdict.PROVEN else _SIGNS[answer.verdict]


def line_of(because: Because | Seen, one: Explained) -> str:
    """The line that an answer names, in brackets; nothing where it is the claim's own."""
    if because.filename:
        return f" ({because.filename}:{because.row})"
    if (because.cell, because.row) == (one.cell, one.row):
        return ""
    cell = f"cell {because.cell}, " if because.cell != one.cell else ""
    return f" ({cell}line {because.row})"


def explain_text(text: str, filename: str, rules: RuleSet, project: Project | None = None) -> list[Explained]:
    """What the rules considered in a file or notebook, by place. Raises `SourceError` where it cannot be analysed."""
    if not is_notebook(filename):
        return _explain_module(text, filename, rules, project)
    from gpulint.lint.cells import Places, join

    module = join(notebook_of(text))
    places = Places(module.text)
    return [_in_cell(one, places) for one in _explain_module(module.text, filename, rules, project)]


def notebook_of(text: str) -> Notebook:
    """The notebook that a file's text spells. Raises `SourceError` where it is none in Python."""
    try:
        notebook = read_notebook(text)
    except NotebookError as error:
        raise SourceError(error.message, error.line, error.column) from None
    if notebook.foreign:
        raise SourceError(notebook.foreign)
    return notebook


def _in_cell(one: Explained, places: Places) -> Explained:
    cell, row = places.cell(one.row)
    answers = tuple(_line_in_cell(because, places) for because in one.answers)
    seen = tuple(_line_in_cell(each, places) for each in one.seen)
    return replace(one, cell=cell, row=row, end_row=one.end_row - one.row + row, answers=answers, seen=seen)


def _line_in_cell(one: _Placed, places: Places) -> _Placed:
    if one.filename:
        return one
    cell, row = places.cell(one.row)
    return replace(one, cell=cell, row=row)


def _explain_module(text: str, filename: str, rules: RuleSet, project: Project | None) -> list[Explained]:
    """What the rules considered in a module, by place. Raises `SourceError` where it cannot be analysed."""
    from gpulint.source.positions import Spans

    project = project or project_of(filename)
    given = linted(text, filename, replace(rules, confidence=Confidence.LOW), project)
    looked, found = given.text, given.findings
    try:
        with deep_stack():
            file = _File(looked, Spans(looked.tree, looked.trees.read), filename, found)
            claims = [one for rule in rules.rules for one in _of_rule(rule, rules, file)]
    except RecursionError:
        raise SourceError("the file is nested too deeply to be analysed") from None
    looked.release()
    return sorted(claims, key=lambda one: (one.row, one.column, one.code))


@dataclass(frozen=True, slots=True)
class _File:
    looked: Text
    spans: Spans
    filename: str
    findings: list[Finding]

    def because(self, answer: Answer, otherwise: int) -> Because:
        """An answer with its line; `otherwise` is the claim's own."""
        row, filename = (otherwise, "") if answer.at is None else self.line(answer.at, answer.filename)
        return Because(answer, row, filename=filename)

    def line(self, at: Any, filename: str = "") -> tuple[int, str]:
        """The row of a node, and the other file that it stands in."""
        if isinstance(at, ast.AST):
            filename = filename or self.looked.asked.path_of(at)
        if filename or isinstance(at, ast.AST):  # libcst has not read that file
            return getattr(at, "lineno", 1), filename and os.path.relpath(filename)
        return self.spans.of(node_of(at))[0].row, ""

    def seen(self, claim: Claimed) -> Iterator[Seen]:
        """What is seen of what a claim is about."""
        if claim.about is None:
            return
        (node, frame), evaluator = claim.about, self.looked.asked.evaluator
        value = evaluator.value_of(node, frame)
        facts: list[tuple[Any, str, Any]] = [("value", _described(value), node)]
        facts += [
            ("made", f"`{quoted(ast.unparse(at), 60)}`", at)
            for at, _ in sorted(value.origins, key=_begins)  # in whichever order they were found
            # no node is an attribute that only its uses show to be a network
            if isinstance(at, ast.AST) and at is not node
        ]
        facts += [("assumed", one.clause, one.at or node) for one in value.assumptions]
        uses = consumers(evaluator, node, frame, "graph" if value.graph else "storage")
        facts += [("used", _USED.get(use.role, use.role).format(use.name or "it"), use.node) for use in uses]
        often = Counter((topic, clause) for topic, clause, _ in facts)
        for topic, clause, at in facts:
            times = often.pop((topic, clause), 0)
            if times:
                row, filename = self.line(at)
                yield Seen(topic, f"{clause}, {times} times" if times > 1 else clause, row, filename=filename)


def _begins(origin: Any) -> tuple[int, int, int, int]:
    """Where what was made stands, outer code before what is in it."""
    row, column, end_row, end = (
        getattr(origin[0], name, 0) or 0 for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
    )
    return row, column, -end_row, -end


def _described(value: Value) -> str:
    """A value in words: its kind, its graph, its size and where it is, as far as they are seen."""
    graph = {Graph.NONE: "without a graph", Graph.MAY: "that may have a graph", Graph.LIVE: "with a graph"}
    size = {"scalar": "one number", "batch": "of a batch"}.get(value.size)
    place = {"host": "on the host", "cuda": "on a GPU"}.get(value.device, "in a place that is not seen")
    kinds = {
        "unknown": "something that is not seen",
        "loaded": "what is loaded",
        "state": "the state of a network",
    }
    kind = kinds.get(value.kind, f"{'an' if value.kind[0] in 'aeiou' else 'a'} {value.kind}")
    has_graph = value.graph or value.kind in ("tensor", "unknown")
    words = [kind, graph[value.graph] if has_graph else None, size, place if value.kind == "tensor" else None]
    return ", ".join(one for one in words if one)


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
        seen=tuple(file.seen(claim)),
    )

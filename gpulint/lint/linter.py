"""Rules over facts: one text in, findings out. No files, no processes, no printing."""

from __future__ import annotations

import ast
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gpulint.answers import (
    NO_FURTHER,
    Answer,
    Question,
    Verdict,
    doubts_of,
    least_open,
    left_open,
    severity_of,
)
from gpulint.findings import Confidence, Edit, Finding, Fix, Position, Related, Severity
from gpulint.lint.cells import unread_cell
from gpulint.lint.trees import Trees, deep_stack
from gpulint.rule import Claimed, Cost, RelatedNode, Report, Rule, RuleSet, SettingProblem, node_of
from gpulint.source.files import MAX_TEXT
from gpulint.source.program import top_of
from gpulint.source.shell import TextSetting, text_settings
from gpulint.source.syntax import SourceError

if TYPE_CHECKING:
    import libcst as cst

    from gpulint.analysis.asked import Asked
    from gpulint.analysis.project.disk import Project
    from gpulint.source.positions import Spans


def lint_text(text: str, filename: str, rules: RuleSet, project: Project | None = None) -> list[Finding]:
    """The findings in `text`, sorted by place, suppressed ones left out.

    Imports of the file's own project are followed where `filename` is a file; `project` keeps what was read for the
    next file, and afterwards names the files that these findings depend on.

    Raises `SourceError` where the text does not parse or is nested too deep.
    """
    found = linted(text, filename, rules, project or project_of(filename))
    found.text.release()
    return found.findings


def project_of(filename: str) -> Project | None:
    """The project around a file, with nothing read of it yet; None where there is no such file."""
    if not os.path.isfile(filename):
        return None
    from gpulint.analysis.project.disk import Project

    return Project(top=top_of([filename]))


class Text:
    """A text that rules look at, each in its own way: what none of them asks for is never made."""

    def __init__(self, text: str, filename: str, project: Project | None) -> None:
        if len(text) > MAX_TEXT:
            size = f"{len(text) / 1e6:.1f} MB, more than {MAX_TEXT / 1e6:g}"
            raise SourceError(f"has {size} of Python: gpulint does not analyse this file")
        engine = project.engine if project is not None else None
        known = engine.tree_of(filename, text) if engine is not None else None
        self.trees, self.filename, self.project = Trees(text, known), filename, project
        self.unread_cell = unread_cell(text)
        self.given_up = False  # a rule has said that it went through as much as it may
        self.took: dict[str, float] = {}  # seconds by the rule; the first that asks for something pays for it

    @cached_property
    def asked(self) -> Asked:
        """The engine for the file, of which nothing is worked out yet."""
        from gpulint.analysis.asked import Asked

        return Asked(self.trees, self.filename, self.project)

    @property
    def tree(self) -> cst.Module:
        """The file as libcst reads it. Raises `SourceError` where libcst refuses the text."""
        return self.trees.module

    def release(self) -> None:
        """Let go of what is known."""
        if "asked" in self.__dict__:
            self.asked.release()
        self.trees.release()


@dataclass(frozen=True, slots=True)
class Linted:
    """What a file gave: its findings, how many more there are that are less certain than asked for, and what they rest on."""

    text: Text
    findings: list[Finding]
    doubtful: int


def linted(text: str, filename: str, rules: RuleSet, project: Project | None) -> Linted:
    """What `lint_text` gives, and more of it. `text.release()` lets go of the analysis."""
    from gpulint.lint.suppressions import MARKER, suppressed

    least = rules.confidence
    if MARKER in text.lower():  # a comment may silence what would not be reported: it is not unused for that
        rules = replace(rules, confidence=Confidence.LOW)
    if project is not None:
        project.begin()
    looked, findings, doubtful = _findings(text, filename, rules, project)
    codes = frozenset(rule.code for rule in rules.rules)
    left = suppressed(text, findings, _StatementRows(looked.trees), filename, codes, rules.known)
    told = [finding for finding in left if finding.confidence.reaches(least)]
    if looked.trees.unfixable is not None:
        told = [replace(finding, fix=None) for finding in told]
    return Linted(looked, told, doubtful + len(left) - len(told))


def _findings(
    text: str, filename: str, rules: RuleSet, project: Project | None
) -> tuple[Text, list[Finding], int]:
    """Most files end after the analysis. libcst parses only those that a rule has something to say about, once. The number
    is that of what is not certain enough to be told. Raises `SourceError` where the text does not parse."""
    looked = Text(text, filename, project)
    try:
        with deep_stack():
            found = list(_reports(looked, rules))
            told = [one for one in found if one[1].confidence.reaches(rules.confidence)]
            placed: list[Finding] = []
            if told:
                from gpulint.source.positions import Spans

                spans = Spans(looked.tree, looked.trees.read)
                placed = [_finding(rule, report, looked.tree, spans, filename) for rule, report in told]
            return looked, placed, len(found) - len(told)
    except RecursionError:
        raise SourceError("the file is nested too deeply to be analysed") from None


def claimed(looked: Text, rule: type[Rule], options: Mapping[str, Any]) -> list[Claimed]:
    """The claims of a rule, each place once: with what speaks most for it."""
    found: dict[object, Claimed] = {}
    cell = looked.unread_cell if rule.costs_when_run else None
    unread = f"cell {cell} does not parse, and speaks of gradients: what it does is not seen"
    for claim in rule().claims(looked.asked, options):
        if cell is not None:
            claim = replace(claim, answers=(*claim.answers, left_open(Question.GRAD, unread)))
        before = found.get(claim.at)
        if before is None or _rank(claim) < _rank(before):
            found[claim.at] = claim
    return list(found.values())


def _rank(claim: Claimed) -> tuple[bool, int, bool]:
    """The surest claim first, and of such the one that matters most."""
    return any(answer.verdict is Verdict.REFUTED for answer in claim.answers), *least_open(claim.answers)


def _reports_of(looked: Text, rule: type[Rule], rules: RuleSet) -> Iterator[Report]:
    if looked.asked.is_test and not rule.in_tests:
        return
    for claim in claimed(looked, rule, rules.options.get(rule.code, {})):
        report = reported(claim, rule)
        if report is not None:
            yield report
    if looked.asked.evaluator.is_spent and not looked.given_up:
        looked.given_up = True
        where = looked.asked.file.tree.body[0]
        message = f"{rule.name}, and the rules after it, were not looked for to the end"
        yield Report(where, message, severity=Severity.INFO, doubts=(NO_FURTHER,))


def reported(claim: Claimed, rule: type[Rule]) -> Report | None:
    """The report of a claim, with the doubts and the severity that its answers leave; None where they refute it, or another is told."""
    if claim.report is None or any(answer.verdict is Verdict.REFUTED for answer in claim.answers):
        return None
    report = claim.report()
    worst = report.severity or rule.severity
    doubts = (*report.doubts, *doubts_of(claim.answers))
    cost, sizes = Cost.of(report.cost), dict.fromkeys(one.clause for one in claim.answers if _tells_size(one))
    cost = replace(cost, here="; ".join(filter(None, (cost.here, *sizes))))
    subject, severity = report.subject or claim.subject, severity_of(claim.answers, worst)
    return replace(report, cost=cost, doubts=doubts, severity=severity, subject=subject)


def _tells_size(answer: Answer) -> bool:
    """Whether an answer says how much it is in this program: that it is little, or what shows that it is not."""
    return answer.minor or (answer.question is Question.SIZE and answer.verdict is Verdict.PROVEN)


def _reports(looked: Text, rules: RuleSet) -> Iterator[tuple[type[Rule], Report]]:
    """What the rules have to say about a file, certain or not, without what its tests or its callers excuse."""
    found: list[tuple[type[Rule], Report]] = []
    for rule in rules.rules:
        began = perf_counter()
        found += ((rule, report) for report in _reports_of(looked, rule, rules))
        looked.took[rule.code] = perf_counter() - began
    matters = [one for one in found if not one[1].doubts and one[1].severity is not Severity.INFO]
    told = {
        at: rule.code for rule, report in matters for at in (report.at, *(one.at for one in report.related))
    }
    for rule, report in found:
        yield rule, _under_its_cause(report, told)


def _under_its_cause(report: Report, told: Mapping[Any, str]) -> Report:
    """A report as a note where all that it follows from is told as well: who mends that, mends this."""
    if not report.follows or not report.follows <= told.keys() or report.severity is Severity.ERROR:
        return report
    causes = sorted(report.follows, key=lambda one: (one.lineno, one.col_offset))
    related = (
        RelatedNode(f"once this is mended, it keeps nothing of it ({told[one]})", one) for one in causes
    )
    return replace(report, severity=Severity.INFO, related=(*report.related, *related))


def _finding(rule: type[Rule], report: Report, module: cst.Module, spans: Spans, filename: str) -> Finding:
    start, end = spans.of(node_of(report.at))
    cost = Cost.of(report.cost)
    fix = None
    repair = report.repair() if callable(report.repair) else report.repair
    if repair is not None:
        from gpulint.fix.fixing import render

        fix = render(module, spans, repair)
        if fix is not None and report.confidence is Confidence.LOW:
            fix = Fix("unsafe", fix.message, fix.edits, fix.unsafe_because or "; ".join(report.doubts))
    related = tuple(
        Related(
            other.filename or filename,
            spans.of(node_of(other.at))[0] if other.at is not None else Position(other.row, 1),
            other.message,
        )
        for other in report.related
    )
    return Finding(
        rule.code,
        rule.name,
        report.severity or rule.severity,
        report.message,
        filename,
        start.row,
        start.column,
        end.row,
        end.column,
        report.reason,
        cost.here,
        fix,
        related,
        doubts=report.doubts,
        subject=report.subject,
        claim=report.claim or rule.runtime_claim,
        measured=cost.measured,
    )


class _StatementRows:
    """First row of the innermost statement around a row: suppression comments may stand there."""

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self._rows: list[int] | None = None

    def __call__(self, row: int) -> int:
        if self._rows is None:
            self._rows = self._collect()
        position = bisect_right(self._rows, row) - 1
        return self._rows[position] if position >= 0 else row

    def _collect(self) -> list[int]:
        return sorted({node.lineno for node in ast.walk(self._trees.tree) if isinstance(node, ast.stmt)})


# -- allocator settings in files other than Python's: one text in, findings out ------------------------------


def lint_settings(text: str, filename: str, rules: RuleSet) -> list[Finding]:
    """The findings in a shell script, Dockerfile or `.env` file, sorted by place, suppressed ones left out."""
    from gpulint.lint.suppressions import suppressed

    readers = [rule for rule in rules.rules if rule.reads_settings]
    findings = [
        _setting_finding(rule, problem, setting, filename)
        for setting in text_settings(text)
        for rule in readers
        for problem in rule().setting_problems(setting.text, rules.options.get(rule.code, {}))
    ]
    codes = frozenset(rule.code for rule in readers)
    return suppressed(text, findings, lambda row: row, filename, codes, rules.known)


def _setting_finding(
    rule: type[Rule], problem: SettingProblem, setting: TextSetting, filename: str
) -> Finding:
    fix = None
    cost = Cost.of(problem.cost)
    if problem.mended is not None and setting.literal:
        edit = Edit(
            Position(setting.row, setting.value_start), Position(setting.row, setting.end), problem.mended
        )
        fix = Fix(problem.applicability, problem.remedy, (edit,))
    return Finding(
        rule.code,
        rule.name,
        rule.severity,
        problem.message,
        filename,
        setting.row,
        setting.start,
        setting.row,
        setting.end,
        problem.reason,
        cost.here,
        fix,
        subject=setting.variable,
        claim=replace(rule.runtime_claim, options=problem.options),
        measured=cost.measured,
    )

"""Rules over facts: one text in, findings out. No files, no processes, no printing."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.findings import Confidence, Finding, Fix, Position, Related
from gpulint.rule import Report, Rule, RuleSet
from gpulint.screening import deep_stack, is_clean, reports
from gpulint.syntax import flaw

if TYPE_CHECKING:
    import libcst as cst

    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.project import Project
    from gpulint.positions import Spans

# The parser and the analysis recurse into brackets and blocks. Deeper files are refused before they can overflow the
# stack of the native parser, which no exception would report.
MAX_NESTING = 400


class SourceError(Exception):
    """The text cannot be analysed. Reported as GPU000 at `line`, `column` (both from 1)."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def lint_text(
    text: str, filename: str, rules: RuleSet, project: Project | None = None, screen: bool = True
) -> list[Finding]:
    """The findings in `text`, sorted by place, suppressed ones left out.

    Imports of the file's own project are followed where `filename` is a file; `project` keeps what was read for the
    next file, and afterwards names the files that these findings depend on. Without `screen` the text is not first
    looked at for whether it is clean: that saves time where findings are expected, and changes none.

    Raises `SourceError` where the text does not parse or is nested too deep.
    """
    from gpulint.suppressions import MARKER, suppressed

    least = rules.confidence
    if MARKER in text.lower():  # a comment may silence what would not be reported: it is not unused for that
        rules = replace(rules, confidence=Confidence.LOW)
    if project is None and os.path.isfile(filename):
        from gpulint.analysis.file.project import Project

        project = Project()
    if project is not None:
        project.begin()
    codes = frozenset(rule.code for rule in rules.rules)
    if screen and is_clean(text, filename, rules, project):
        return suppressed(text, [], lambda row: row, filename, codes, rules.known)
    module, facts = analysed(text, filename, project)
    findings = list(_findings(module, facts, text, filename, rules, project))
    rows = _statement_rows(facts, module, text, findings)
    left = suppressed(text, findings, rows, filename, codes, rules.known)
    return [finding for finding in left if finding.confidence.reaches(least)]


def analysed(text: str, filename: str, project: Project | None) -> tuple[cst.Module, FileFacts]:
    """The tree and facts of libcst's pass. What Python's own parser refuses as too deep never gets there, and where
    both refuse, the message is Python's."""
    wrong = flaw(text)
    if wrong is not None and wrong.too_deep:
        raise SourceError(wrong.message, wrong.line, wrong.column)
    try:
        return _facts(text, filename, project)
    except SourceError:
        if wrong is None:
            raise
        raise SourceError(wrong.message, wrong.line, wrong.column) from None


def parse(text: str) -> cst.Module:
    """Parse a file's text. Raises `SourceError` with the place where it stops making sense."""
    import libcst as cst

    _check_nesting(text)
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        message = error.message.split("\n")[0].removeprefix("parser error: error at ")
        raise SourceError(
            f"the file does not parse: {message}", error.raw_line, error.raw_column + 1
        ) from None
    except RecursionError:
        raise SourceError("the file is nested too deeply to be parsed") from None


def _facts(text: str, filename: str, project: Project | None) -> tuple[cst.Module, FileFacts]:
    from gpulint.analysis.driver import analyse

    try:
        with deep_stack():
            module = parse(text)
            return module, analyse(module, filename, project)
    except RecursionError:
        raise SourceError("the file is nested too deeply to be analysed") from None


def _findings(
    module: cst.Module, facts: FileFacts, text: str, filename: str, rules: RuleSet, project: Project | None
) -> Iterator[Finding]:
    spans: Spans | None = None
    for rule, report in reports(facts, filename, rules, project):
        if spans is None:
            from gpulint.positions import Spans

            spans = Spans(module, text)
        yield _finding(rule, report, module, spans, filename)


def _finding(rule: type[Rule], report: Report, module: cst.Module, spans: Spans, filename: str) -> Finding:
    start, end = spans.of(report.node)
    fix = None
    repair = report.repair() if callable(report.repair) else report.repair
    if repair is not None:
        from gpulint.fixing import render

        fix = render(module, spans, repair)
        if fix is not None and report.doubt:
            fix = Fix("unsafe", fix.message, fix.edits, fix.unsafe_because or report.doubt)
    related = tuple(
        Related(
            other.filename or filename,
            spans.of(other.node)[0] if other.node is not None else Position(other.row, 1),
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
        report.cost,
        fix,
        related,
        doubt=report.doubt,
        subject=report.subject,
        claim=report.claim or rule.runtime_claim,
    )


def _statement_rows(
    facts: FileFacts, module: cst.Module, text: str, findings: list[Finding]
) -> _StatementRows:
    return _StatementRows(facts, module, text)


class _StatementRows:
    """First row of the innermost statement around a row: suppression comments may stand there."""

    def __init__(self, facts: FileFacts, module: cst.Module, text: str) -> None:
        self._facts = facts
        self._module = module
        self._text = text
        self._rows: list[int] | None = None

    def __call__(self, row: int) -> int:
        if self._rows is None:
            self._rows = self._collect()
        position = bisect_right(self._rows, row) - 1
        return self._rows[position] if position >= 0 else row

    def _collect(self) -> list[int]:
        from gpulint.analysis.code import ir
        from gpulint.positions import Spans

        spans = Spans(self._module, self._text)
        rows: set[int] = set()
        for function in self._facts.module.functions:
            for statement in ir.statements(function.body):
                rows.add(spans.of(statement.node)[0].row)
        for cls in self._facts.module.classes.values():
            rows.add(spans.of(cls.node)[0].row)
        return sorted(rows)


def _check_nesting(text: str) -> None:
    """Refuse texts whose brackets or blocks nest deeper than the parser's stack can bear.

    Counts brackets without looking at strings, so a line is examined closely only when the plain count is suspicious.
    """
    if text.count("(") + text.count("[") + text.count("{") > MAX_NESTING:
        depth = deepest = row = 0
        for number, line in enumerate(text.split("\n"), start=1):
            for character in line:
                if character in "([{":
                    depth += 1
                    if depth > deepest:
                        deepest, row = depth, number
                elif character in ")]}" and depth:
                    depth -= 1
        if deepest > MAX_NESTING and _really_nested(text):
            raise SourceError(
                f"brackets are nested more than {MAX_NESTING} deep: gpulint does not analyse this file", row
            )
    deepest_indent = 0
    for number, line in enumerate(text.split("\n"), start=1):
        indent = len(line) - len(line.lstrip(" \t"))
        if indent > deepest_indent and line.strip():
            deepest_indent = indent
            if indent > MAX_NESTING and _really_nested(text):
                raise SourceError("blocks are nested too deeply: gpulint does not analyse this file", number)


def _really_nested(text: str) -> bool:
    """Count nesting on tokens, where strings and comments no longer deceive."""
    import io
    import tokenize

    depth = indent = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.OP:
                if token.string in "([{":
                    depth += 1
                elif token.string in ")]}":
                    depth -= 1
            elif token.type == tokenize.INDENT:
                indent += 1
            elif token.type == tokenize.DEDENT:
                indent -= 1
            if depth > MAX_NESTING or indent > MAX_NESTING // 4:
                return True
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return depth > MAX_NESTING
    return False

"""A job's summary, which GitHub shows on its page: the findings by rule, each place a link to its lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from gpulint.findings import Finding, Severity
from gpulint.reports import Report, in_checkout, place, plural, shown
from gpulint.reports.layout import printable
from gpulint.reports.lint.summary import is_mended

_MOST_PLACES: Final = 20  # of one rule; GitHub refuses a summary of more than 1 MiB


def markdown(report: Report) -> str:
    """The summary of one run, empty where there is nothing to say."""
    return "\n".join((*_lines(report), "")) if report.findings else ""


def _lines(report: Report) -> Iterator[str]:
    found = report.findings
    fixable = sum(is_mended(finding, report.unsafe) for finding in found)
    yield f"### gpulint: {plural(len(found), 'finding')}{f', {fixable} fixable with `--fix`' if fixable else ''}"
    yield ""
    yield "| rule | severity | findings | where |"
    yield "|---|---|---:|---|"
    for code in sorted({finding.code for finding in found}):
        alike = [finding for finding in found if finding.code == code]
        rule = f"[{code}]({alike[0].url}) {alike[0].name}"
        severities = ", ".join(level.word for level in Severity if level in {f.severity for f in alike})
        yield f"| {rule} | {severities} | {len(alike)} | {_places(alike, report)} |"
    yield ""


def _places(findings: list[Finding], report: Report) -> str:
    listed = [_linked(finding, report) for finding in findings[:_MOST_PLACES]]
    more = len(findings) - _MOST_PLACES
    return "<br>".join([*listed, f"and {more} more"] if more > 0 else listed)


def _linked(finding: Finding, report: Report) -> str:
    """File and line, as a link where the job says which repository and commit it works on."""
    path = in_checkout(finding.filename)
    told = _escaped(f"{path or shown(finding.filename)}:{place(finding).rpartition(':')[0]}")
    repository, commit = os.environ.get("GITHUB_REPOSITORY"), os.environ.get("GITHUB_SHA")
    if path is None or not repository or not commit:
        return told
    first, last = report.sources.file_rows(finding)
    lines = f"L{first}" if first == last else f"L{first}-L{last}"
    server = os.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    plain = "?plain=1" if path.endswith(".ipynb") else ""  # a notebook that is drawn has no lines
    return f"[{told}]({server}/{repository}/blob/{commit}/{quote(os.fsencode(path))}{plain}#{lines})"


def _escaped(text: str) -> str:
    """Text that stays as it is in one cell of a table."""
    text = printable(text)
    for sign in "\\|[]_*`~":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.replace("<", "&lt;").split())

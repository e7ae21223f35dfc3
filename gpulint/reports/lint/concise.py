"""One line a finding: ``path:row:column: CODE message``, as ruff, flake8 and editors' error formats have it."""

from __future__ import annotations

from itertools import groupby
from typing import TextIO

from gpulint.findings import Finding
from gpulint.reports import Report, place, shown
from gpulint.reports.layout import Line, linked, paint, printable
from gpulint.reports.lint.summary import is_mended, summary


def write(report: Report, out: TextIO) -> None:
    lines: list[Line] = [
        [(printable(shown(one.filename)), "path"), (f":{place(one)}: ", "faint"), *_told(one, report)]
        for one in report.findings
    ]
    paint(lines + summary(report), out, report.colour)


def write_grouped(report: Report, out: TextIO) -> None:
    """A file's findings below its name, as ruff has them."""
    lines: list[Line] = []
    for path, group in groupby(report.findings, key=lambda finding: finding.filename):
        findings = list(group)
        width = max(len(place(finding)) for finding in findings)
        lines.append([(printable(shown(path)), "path"), (":", "faint")])
        lines += ([(f"  {place(one):<{width}} ", "faint"), *_told(one, report)] for one in findings)
        lines.append([])
    paint(lines + summary(report), out, report.colour)


def _told(finding: Finding, report: Report) -> Line:
    """The rule, `[*]` where --fix mends it, and the message."""
    style = finding.severity.value
    mark = "[*] " if is_mended(finding, report.unsafe) else ""
    code = (finding.code, linked(style, finding.url) if report.links else style)
    return [code, (" ", ""), (mark, "fix"), (printable(finding.message), "")]

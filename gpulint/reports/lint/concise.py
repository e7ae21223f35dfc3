"""One line a finding: ``path:row:column: CODE message``, as ruff, flake8 and editors' error formats have it."""

from __future__ import annotations

from typing import TextIO

from gpulint.reports import Report, place, shown
from gpulint.reports.layout import Line, linked, paint, printable
from gpulint.reports.lint.summary import is_mended, summary


def write(report: Report, out: TextIO) -> None:
    lines: list[Line] = []
    for finding in report.findings:
        style = finding.severity.value
        mark = "[*] " if is_mended(finding, report.unsafe) else ""
        lines.append(
            [
                (printable(shown(finding.filename)), "path"),
                (f":{place(finding)}: ", "faint"),
                (finding.code, linked(style, finding.url) if report.links else style),
                (" ", ""),
                (mark, "fix"),
                (printable(finding.message), ""),
            ]
        )
    paint(lines + summary(report), out, report.colour)

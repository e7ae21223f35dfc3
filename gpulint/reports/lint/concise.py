"""One line a finding: ``path:row:column: CODE message``, as ruff, flake8 and editors' error formats have it."""

from __future__ import annotations

from typing import TextIO

from gpulint.reports import Report, place, shown
from gpulint.reports.layout import Line, paint, printable
from gpulint.reports.lint.summary import summary


def write(report: Report, out: TextIO) -> None:
    lines: list[Line] = []
    for finding in report.findings:
        mark = "[*] " if finding.fix and (report.unsafe or finding.fix.applicability == "safe") else ""
        lines.append(
            [
                (printable(shown(finding.filename)), "path"),
                (f":{place(finding)}: ", "faint"),
                (f"{finding.code} ", finding.severity.value),
                (mark, "fix"),
                (printable(finding.message), ""),
            ]
        )
    paint(lines + summary(report), out, report.colour)

"""A file's findings below its name, as ruff has them."""

from __future__ import annotations

from itertools import groupby
from typing import TextIO

from gpulint.reports import Report, place, shown
from gpulint.reports.layout import Line, paint, printable
from gpulint.reports.lint.concise import told
from gpulint.reports.lint.summary import summary


def write(report: Report, out: TextIO) -> None:
    lines: list[Line] = []
    for path, group in groupby(report.findings, key=lambda finding: finding.filename):
        findings = list(group)
        width = max(len(place(finding)) for finding in findings)
        lines.append([(printable(shown(path)), "path"), (":", "faint")])
        lines += ([(f"  {place(one):<{width}} ", "faint"), *told(one, report)] for one in findings)
        lines.append([])
    paint(lines + summary(report), out, report.colour)

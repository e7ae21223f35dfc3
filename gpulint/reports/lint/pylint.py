"""One line a finding, ``path:row: [CODE] message``, for what reads pylint's reports; rows are those of the file."""

from __future__ import annotations

from typing import TextIO

from gpulint.reports import Report, in_cell, shown
from gpulint.reports.layout import printable


def write(report: Report, out: TextIO) -> None:
    for finding in report.findings:
        row, _ = report.sources.file_rows(finding)
        what = printable(in_cell(finding) + finding.message)
        out.write(f"{printable(shown(finding.filename))}:{row}: [{finding.code}] {what}\n")

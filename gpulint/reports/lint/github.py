"""Workflow commands: GitHub shows each as an annotation on the changed lines."""

from __future__ import annotations

from typing import TextIO

from gpulint.findings import Finding, Severity
from gpulint.reports import Report, details, in_cell, in_checkout, shown
from gpulint.reports.layout import printable
from gpulint.source.sources import Sources

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def write(report: Report, out: TextIO) -> None:
    for finding in report.findings:
        out.write(_annotation(finding, report.sources) + "\n")


def _annotation(finding: Finding, sources: Sources) -> str:
    first, last = sources.file_rows(finding)
    properties = {
        "title": f"{finding.code} {finding.name}",
        "file": in_checkout(finding.filename) or shown(finding.filename),
        "line": first,
        "endLine": last,
    }
    # Columns of an annotation over several lines are refused, and those of a cell are none of the notebook's JSON.
    if first == last and finding.cell is None:
        properties |= {"col": finding.column, "endColumn": max(finding.end_column, finding.column + 1)}
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    parts = [f"{finding.code} {in_cell(finding)}{finding.message}", *details(finding)]
    if finding.fix is not None:
        parts.append(f"Fix ({finding.fix.safety}): {finding.fix.message}")
    return f"::{_LEVELS[finding.severity]} {listed}::{_data(chr(10).join(parts))}"


def _data(text: str) -> str:
    text = "\n".join(map(printable, text.split("\n")))  # the log of a job is a terminal, too
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

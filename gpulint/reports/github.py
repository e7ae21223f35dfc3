"""Workflow commands: GitHub shows each as an annotation on the changed lines."""

from __future__ import annotations

from typing import TextIO

from gpulint.findings import Finding, Severity
from gpulint.reports import Report, shown

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def write(report: Report, out: TextIO) -> None:
    for finding in report.findings:
        out.write(_annotation(finding) + "\n")


def _annotation(finding: Finding) -> str:
    properties = {
        "title": f"{finding.code} {finding.name}",
        "file": shown(finding.filename),
        "line": finding.line,
        "endLine": finding.end_line,
    }
    if finding.line == finding.end_line:  # columns of an annotation over several lines are refused
        properties |= {"col": finding.column, "endColumn": max(finding.end_column, finding.column + 1)}
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    parts = [f"{finding.code} {finding.message}", finding.reason, finding.cost]
    if finding.fix is not None:
        parts.append(f"Fix ({finding.fix.applicability}): {finding.fix.message}")
    return f"::{_LEVELS[finding.severity]} {listed}::{_data(chr(10).join(part for part in parts if part))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

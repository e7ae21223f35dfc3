"""GitLab's code quality report: the subset of the Code Climate format that it reads."""

from __future__ import annotations

import json
import os
from typing import Any, TextIO

from gpulint.findings import Finding, Severity
from gpulint.reports import Report, details, full, in_cell, in_checkout
from gpulint.reports.lint.fingerprints import fingerprints
from gpulint.source.sources import Sources

_LEVELS = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def write(report: Report, out: TextIO) -> None:
    names = fingerprints(report.findings, report.sources)
    listed = [
        _issue(finding, name, report.sources) for finding, name in zip(report.findings, names, strict=True)
    ]
    json.dump(listed, out, indent=2)
    out.write("\n")


def _issue(finding: Finding, fingerprint: str, sources: Sources) -> dict[str, Any]:
    return {
        "type": "issue",
        "check_name": f"{finding.code} {finding.name}",
        "description": f"{finding.code} {in_cell(finding)}{finding.message}",
        "content": {"body": "\n\n".join((finding.message, *details(finding)))},
        "categories": ["Performance"],
        "severity": _LEVELS[finding.severity],
        "fingerprint": fingerprint,
        "location": {
            "path": _in_project(finding.filename),
            "positions": _positions(finding, sources),
        },
    }


def _positions(finding: Finding, sources: Sources) -> dict[str, dict[str, int]]:
    first, last = sources.file_rows(finding)
    start, end = (1, 1) if finding.cell is not None else (finding.column, finding.end_column)
    return {"begin": {"line": first, "column": start}, "end": {"line": last, "column": end}}


def _in_project(path: str) -> str:
    """The path relative to the project's checkout, as GitLab matches it to the merge request."""
    if path.startswith("<"):
        return path
    return in_checkout(path) or full(path).replace(os.sep, "/")

"""The shape of ruff's JSON: a list of findings, file names absolute."""

from __future__ import annotations

import json
from typing import Any, TextIO

from gpulint.findings import Finding
from gpulint.reports import Report, full


def write(report: Report, out: TextIO) -> None:
    json.dump([as_json(finding) for finding in report.findings], out, indent=2)
    out.write("\n")


def write_lines(report: Report, out: TextIO) -> None:
    """One object a line."""
    for finding in report.findings:
        out.write(json.dumps(as_json(finding)) + "\n")


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding with absolute file names."""
    data = finding.to_json()
    data["filename"] = full(finding.filename)
    for other in data["related"]:
        other["filename"] = full(other["filename"])
    return data

"""One JSON object a line, as `json` has them in its list."""

from __future__ import annotations

import json
from typing import TextIO

from gpulint.reports import Report
from gpulint.reports.lint.json import as_json


def write(report: Report, out: TextIO) -> None:
    for finding in report.findings:
        out.write(json.dumps(as_json(finding)) + "\n")

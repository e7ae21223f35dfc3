"""The findings in the files that a traceback names, for `gpulint oom`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from gpulint.config import ConfigError, ConfigResolver, shown_path
from gpulint.findings import Finding
from gpulint.lint.engine import Options, run
from gpulint.reports import place, plural
from gpulint.source.discovery import discover

_MOST_FILES = 20
_MOST_SHOWN = 20


def findings_in(files: Iterable[str]) -> list[Finding]:
    """What is found in those of the files that are here; nothing where a configuration is wrong."""
    here = [file for file in dict.fromkeys(files) if os.path.isfile(file)][:_MOST_FILES]
    if not here:
        return []
    try:
        found = discover(here, ConfigResolver())
        checked = run(found, Options(jobs=1, cache=False))
    except ConfigError:
        return []
    return [finding for finding in checked.findings if not finding.is_diagnostic]


def lines_of(findings: list[Finding], frames: Collection[tuple[str, int]]) -> list[str]:
    """The findings, a line each, those on a line of a traceback first."""
    raised = {(os.path.abspath(file), line) for file, line in frames}

    def is_raised(finding: Finding) -> bool:
        rows = range(finding.line, finding.end_line + 1)
        return any((os.path.abspath(finding.filename), row) in raised for row in rows)

    ordered = sorted(findings, key=lambda finding: not is_raised(finding))
    lines = ["", f"in the files that the tracebacks name, gpulint has {plural(len(findings), 'finding')}:"]
    for finding in ordered[:_MOST_SHOWN]:
        mark = " (a line of the traceback)" if is_raised(finding) else ""
        where = f"{shown_path(finding.filename)}:{place(finding)}"
        lines.append(f"  {where}: {finding.code} {finding.message}{mark}")
    if len(findings) > _MOST_SHOWN:
        lines.append(f"  ... and {len(findings) - _MOST_SHOWN} more; gpulint FILE shows them")
    return lines

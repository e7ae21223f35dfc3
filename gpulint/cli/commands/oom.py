"""`gpulint oom`: read out-of-memory messages out of a log and say what they mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

import click

from gpulint.cli._errors import Failed, as_error, say
from gpulint.cli._options import on_terminal, option, print_json
from gpulint.config import ConfigError, ConfigResolver
from gpulint.findings import Finding
from gpulint.lint.engine import Options, run
from gpulint.operator.oom_log import open_log, read_log
from gpulint.reports import place, plural, shown_path
from gpulint.reports.oom import document
from gpulint.reports.terminal import write
from gpulint.source.discovery import discover

_MOST_FILES = 20
_MOST_SHOWN = 20


@click.command()
@click.argument("log", default="-")
@option.as_json("Figures, advice and findings as JSON.")
@option.flag("--all", "all_of_them", "Every place, not only the first five.")
@option.flag("--no-lint", "Do not check the files that the tracebacks name.")
@option.colour
def command(log: str, as_json: bool, all_of_them: bool, no_lint: bool, colour: str) -> int:
    """Tell capacity from fragmentation in the out-of-memory messages of LOG (a file; standard input by default).

    Reads messages of every torch since 0.4, of several ranks, in a log of any size. The files that their tracebacks
    name are checked where they are at hand. Exit status: 0 when there is no such message, 1 when there is one, 2 when
    the log cannot be read.
    """
    if log == "-" and sys.stdin is not None and sys.stdin.isatty():
        say("reading the log from the terminal; end it with Ctrl-D")
    with as_error(Failed, OSError, of=log), open_log(log) as file:
        report = read_log(file)
    frames = [frame for one in report.occurrences for frame in one.frames]
    findings = [] if no_lint else _findings_in(dict.fromkeys(file for file, _ in frames))
    if as_json:
        print_json({**report.to_json(), "findings": [finding.to_json() for finding in findings]})
    else:
        found = list(_lines_of(findings, frames)) if findings else []
        write(document(report, found, all_of_them), sys.stdout, *on_terminal(colour))
    return 1 if report.occurrences or report.unread else 0


def _findings_in(files: Iterable[str]) -> list[Finding]:
    """What is found in those of the files that are here; nothing where a configuration is wrong."""
    here = [file for file in files if os.path.isfile(file)][:_MOST_FILES]
    if not here:
        return []
    try:
        checked = run(discover(here, ConfigResolver()), Options(jobs=1, cache=False))
    except ConfigError:
        return []
    return [finding for finding in checked.findings if not finding.is_diagnostic]


def _lines_of(findings: list[Finding], frames: Iterable[tuple[str, int]]) -> Iterator[str]:
    """The findings, a line each, those on a line of a traceback first."""
    raised = {(os.path.abspath(file), line) for file, line in frames}

    def is_raised(finding: Finding) -> bool:
        rows = range(finding.line, finding.end_line + 1)
        return any((os.path.abspath(finding.filename), row) in raised for row in rows)

    yield from ("", f"in the files that the tracebacks name, gpulint has {plural(len(findings), 'finding')}:")
    for finding in sorted(findings, key=lambda finding: not is_raised(finding))[:_MOST_SHOWN]:
        mark = " (a line of the traceback)" if is_raised(finding) else ""
        where = f"{shown_path(finding.filename)}:{place(finding)}"
        yield f"  {where}: {finding.code} {finding.message}{mark}"
    if len(findings) > _MOST_SHOWN:
        yield f"  ... and {len(findings) - _MOST_SHOWN} more; gpulint FILE shows them"

"""`gpulint oom`: read out-of-memory messages out of a log and say what they mean."""

from __future__ import annotations

import sys

import click

from gpulint.cli._errors import say
from gpulint.cli._options import as_json_option, on_terminal, print_json
from gpulint.cli._options import colour as colour_option


@click.command()
@click.argument("log", default="-")
@as_json_option("Figures, advice and findings as JSON.")
@click.option("--all", "all_of_them", is_flag=True, help="Every place, not only the first five.")
@click.option("--no-lint", is_flag=True, help="Do not check the files that the tracebacks name.")
@colour_option("Options")
def command(log: str, as_json: bool, all_of_them: bool, no_lint: bool, colour: str) -> int:
    """Tell capacity from fragmentation in the out-of-memory messages of LOG (a file; standard input by default).

    Reads messages of every torch since 0.4, of several ranks, in a log of any size. The files that their tracebacks
    name are checked where they are at hand. Exit status: 0 when there is no such message, 1 when there is one, 2 when
    the log cannot be read.
    """
    from gpulint.operator.oom_log import open_log, read_log

    if log == "-" and sys.stdin is not None and sys.stdin.isatty():
        say("reading the log from the terminal; end it with Ctrl-D")
    try:
        with open_log(log) as file:
            report = read_log(file)
    except OSError as error:
        say(f"{log}: {error.strerror or error}")
        return 2
    findings = []
    if report.occurrences and not no_lint:
        from gpulint.cli._check import findings_in

        findings = findings_in(file for one in report.occurrences for file, _ in one.frames)
    if as_json:
        print_json({**report.to_json(), "findings": [finding.to_json() for finding in findings]})
        return 1 if report.occurrences or report.unread else 0
    from gpulint.cli._check import lines_of
    from gpulint.reports.oom import document
    from gpulint.reports.terminal import write

    raised = {place for one in report.occurrences for place in one.frames}
    found = lines_of(findings, raised) if findings else []
    write(document(report, found, all_of_them), sys.stdout, *on_terminal(colour))
    return 1 if report.occurrences or report.unread else 0

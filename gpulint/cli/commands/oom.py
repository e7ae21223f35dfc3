"""`gpulint oom`: read out-of-memory messages out of a log and say what they mean."""

from __future__ import annotations

import sys

import click


@click.command(short_help="Explain the out-of-memory messages in a log.")
@click.argument("log", default="-")
@click.option("--json", "as_json", is_flag=True, help="Figures and advice as JSON.")
@click.option("--all", "all_of_them", is_flag=True, help="Every place, not only the first five.")
def command(log: str, as_json: bool, all_of_them: bool) -> int:
    """Tell capacity from fragmentation in the out-of-memory messages of LOG (a file; standard input by default).

    Reads messages of every torch since 1.10, of several ranks, in a log of any size. Exit status: 0 when there
    is no such message, 1 when there is one.
    """
    from gpulint.operator.oom_log import open_log, read_log, render

    if log == "-" and sys.stdin is not None and sys.stdin.isatty():
        print("gpulint: reading the log from the terminal; end it with Ctrl-D", file=sys.stderr)
    try:
        with open_log(log) as file:
            report = read_log(file)
    except OSError as error:
        print(f"gpulint: {log}: {error.strerror or error}", file=sys.stderr)
        return 2
    if as_json:
        import json

        print(json.dumps(report.to_json(), indent=2))
    else:
        print("\n".join(render(report, all_of_them)))
    return 1 if report.occurrences else 0

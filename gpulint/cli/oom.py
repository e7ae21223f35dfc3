"""`gpulint oom`: read out-of-memory messages out of a log and say what they mean."""

from __future__ import annotations

from typing import IO

import click


@click.command()
@click.argument("log", type=click.File("r", encoding="utf-8", errors="replace", lazy=False), default="-")
@click.option("--json", "as_json", is_flag=True, help="Figures and advice as JSON.")
@click.option("--all", "all_of_them", is_flag=True, help="Every place, not only the first five.")
def command(log: IO[str], as_json: bool, all_of_them: bool) -> int:
    """Tell capacity from fragmentation in the out-of-memory messages of LOG (a file; standard input by default).

    Reads messages of every torch since 1.10, of several ranks, in a log of any size. Exit status: 0 when there
    is no such message, 1 when there is one.
    """
    from gpulint.operator.oom_log import read_log, render

    report = read_log(log)
    if as_json:
        import json

        print(json.dumps(report.to_json(), indent=2))
    else:
        print("\n".join(render(report, all_of_them)))
    return 1 if report.occurrences else 0

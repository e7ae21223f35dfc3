"""`gpulint explain`: why a line is reported, or is not."""

from __future__ import annotations

import click

from gpulint.cli._options import Configured, configuration, output_format


@click.command()
@click.argument("location", metavar="FILE[:LINE]")
@click.option("--rule", "codes", metavar="CODE", multiple=True, help="Only this rule; may be repeated.")
@configuration()
@output_format("text", "json")
def command(
    location: str, codes: tuple[str, ...], config: Configured, isolated: bool, output_format: str
) -> int:
    """Show every claim that was considered at a line, told or not, and what its questions were answered.

    A claim is told where no answer refutes it. In a notebook LINE is CELL:LINE, or the line in the file's JSON.
    Exit status: 0 something was considered, 1 nothing was, 2 wrong use.
    """
    from gpulint.cli._rules import explain

    return explain(location, codes, config, isolated, output_format)

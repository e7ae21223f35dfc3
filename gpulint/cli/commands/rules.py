"""`gpulint rules`: the rules in a table."""

from __future__ import annotations

import click

from gpulint.cli._options import Configured, configuration, output_format


@click.command()
@output_format("text", "json", "markdown")
@configuration()
def command(output_format: str, config: Configured, isolated: bool) -> int:
    """List the rules, those of the project's own files among them, and which are on."""
    from gpulint.cli._rules import print_table

    return print_table(output_format, config, isolated)

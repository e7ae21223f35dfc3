"""`gpulint rules`: the rules in a table."""

from __future__ import annotations

import click


@click.command(short_help="List the rules.")
@click.option(
    "--output-format",
    metavar="FORMAT",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    help="text, json or markdown.",
)
@click.option(
    "--config", "file", metavar="FILE", type=click.Path(), help="This configuration instead of the nearest."
)
@click.option("--isolated", is_flag=True, help="No configuration files.")
def command(output_format: str, file: str | None, isolated: bool) -> int:
    """List the rules, those of the project's own files among them, and which are on."""
    from gpulint.cli._rules import print_table

    return print_table(output_format, file, isolated)

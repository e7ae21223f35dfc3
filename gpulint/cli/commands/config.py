"""`gpulint config`: the settings in force, and the schema of the configuration."""

from __future__ import annotations

import click


@click.command(short_help="Print the settings in force, or their schema.")
@click.argument("path", type=click.Path(), default=".")
@click.option(
    "--config", "file", metavar="FILE", type=click.Path(), help="This configuration instead of the nearest."
)
@click.option("--isolated", is_flag=True, help="No configuration files.")
@click.option("--schema", is_flag=True, help="Print a JSON schema of the configuration instead.")
def command(path: str, file: str | None, isolated: bool, schema: bool) -> None:
    """Print the settings in force for PATH (by default the current directory), as TOML."""
    from gpulint.cli._config import schema_text, settings_text

    click.echo(schema_text() if schema else settings_text(path, file, isolated), nl=False)

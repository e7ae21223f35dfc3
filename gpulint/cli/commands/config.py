"""`gpulint config`: the settings in force, and the schema of the configuration."""

from __future__ import annotations

import click

from gpulint.cli._options import Configured, option, print_json
from gpulint.cli._settings import settings_text
from gpulint.config import json_schema


@click.command()
@click.argument("path", type=click.Path(), default=".")
@option.configuration
@option.flag("--schema", "Print a JSON schema of the configuration instead.")
def command(path: str, config: Configured, isolated: bool, schema: bool) -> None:
    """Print the settings in force for PATH (by default the current directory), as TOML."""
    if schema:
        print_json(json_schema())
    else:
        click.echo(settings_text(path, config.resolver(isolated)), nl=False)

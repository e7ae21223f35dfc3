"""`gpulint config`: the settings in force, and the schema of the configuration."""

from __future__ import annotations

import click

from gpulint.cli._options import Configured, configuration


@click.command()
@click.argument("path", type=click.Path(), default=".")
@configuration()
@click.option("--schema", is_flag=True, help="Print a JSON schema of the configuration instead.")
def command(path: str, config: Configured, isolated: bool, schema: bool) -> None:
    """Print the settings in force for PATH (by default the current directory), as TOML."""
    if schema:
        import json

        from gpulint.config import json_schema

        click.echo(json.dumps(json_schema(), indent=2))
    else:
        from gpulint.cli._check import settings_text

        click.echo(settings_text(path, config.resolver(isolated)), nl=False)

"""`gpulint init`: a configuration, a pre-commit hook and a workflow, where there are none."""

from __future__ import annotations

import click


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False), default=".")
@click.option("--diff", is_flag=True, help="Print what would be written; write nothing.")
def command(directory: str, diff: bool) -> int:
    """Write gpulint.toml, .pre-commit-config.yaml and .github/workflows/gpulint.yml into DIRECTORY.

    What is there already is left alone, and what to add to it by hand is printed; a configuration of ruff gets
    gpulint's codes for its `external`. Exit status: 0; 2 where a file
    could not be written.
    """
    from gpulint.cli._init import initialise

    return initialise(directory, diff)

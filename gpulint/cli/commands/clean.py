"""`gpulint clean`: take away what earlier runs found."""

from __future__ import annotations

import contextlib
import os

import click

from gpulint.cli._errors import Failed, as_error, say
from gpulint.cli._options import option
from gpulint.config import shown_path
from gpulint.lint.cache import forget, users_folder


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(exists=True, file_okay=False))
@option.cache_dir("What check --cache-dir was given.")
def command(paths: tuple[str, ...], cache_dir: str | None) -> None:
    """Take away the cache of projects in PATHS and the directories below (by default the current one).

    Exit status: 0 it is gone, 2 it could not be taken away.
    """
    folder = cache_dir or users_folder()
    projects: list[str] = []
    cannot = f"{shown_path(folder)}: cannot be cleaned"
    with as_error(Failed, OSError, of=cannot), contextlib.suppress(FileNotFoundError):
        projects = forget(folder, [os.path.realpath(path) for path in paths or (os.curdir,)])
    for project in projects:
        click.echo(f"forgot {shown_path(project)}")
    if not projects:
        say("no cache found")

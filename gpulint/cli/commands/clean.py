"""`gpulint clean`: take away the caches."""

from __future__ import annotations

import os
import sys

import click


@click.command(short_help="Take away the caches of earlier runs.")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--cache-dir",
    metavar="DIR",
    type=click.Path(file_okay=False),
    envvar="GPULINT_CACHE_DIR",
    help="What check --cache-dir was given.",
)
def command(paths: tuple[str, ...], cache_dir: str | None) -> int:
    """Take away the caches in PATHS and the directories below (by default the current one).

    Exit status: 0 they are gone, 2 one could not be taken away.
    """
    from gpulint.config import shown_path
    from gpulint.lint.cache import caches_below, remove_cache

    found = [cache for path in paths or (os.curdir,) for cache in caches_below(os.path.abspath(path))]
    if cache_dir is not None:
        found.append(os.path.abspath(cache_dir))
    removed, failed = 0, False
    for cache in dict.fromkeys(found):
        try:
            if remove_cache(cache):
                removed += 1
                click.echo(f"removed {shown_path(cache)}")
        except OSError as error:
            failed = True
            print(
                f"gpulint: {shown_path(cache)}: cannot be removed: {error.strerror or error}", file=sys.stderr
            )
    if not removed and not failed:
        print("gpulint: no cache found", file=sys.stderr)
    return 2 if failed else 0

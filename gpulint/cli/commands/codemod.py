"""`gpulint codemod`: put the memory kit into existing training scripts."""

from __future__ import annotations

import os
import sys

import click

from gpulint.cli._dispatch import while_read
from gpulint.cli._errors import say
from gpulint.cli._options import option
from gpulint.codemods import INSTALL, NAMES, change_files

_LACKING = {
    "monitor": "there is no loop that trains (backward and an optimizer's step in one loop, or in a function that it calls) and no "
    f"trainer of Lightning or transformers whose callbacks are in sight, or each has its Monitor already; {INSTALL}",
    "oom-guard": "there is no function or loop that trains, or each is guarded already",
    "phase-cleanup": "no epoch of a training has a validation or a checkpoint in sight, or the memory is cleared there already",
    "alloc-conf": "there is no program that trains and is run as a script, or it configures the allocator already",
}


@click.command()
@click.argument("name", type=click.Choice(NAMES))
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@option.flag("--diff", "Print what would change; change nothing.")
def command(name: str, paths: tuple[str, ...], diff: bool) -> int:
    """Put the memory kit into the training scripts behind PATHS.

    \b
    monitor        a Monitor around the training loop, or a trainer's callback
    oom-guard      diagnosis and recovery around the functions that train
    phase-cleanup  memory.clear() after validations and checkpoints
    alloc-conf     expandable segments, set in time and read back

    A second run changes nothing. Exit status: 0; 1 with --diff where something would change; 2 where a file
    could not be read or written.
    """
    outcome = change_files(name, paths, diff)
    with while_read():
        sys.stdout.writelines(outcome.diffs)
    for path, reason in (*outcome.left_out, *outcome.problems):
        say(f"{path}: {reason}")
    if not outcome.changed and not outcome.left_out and not outcome.problems and outcome.seen:
        say(f"nothing to change: {_LACKING[name]}")
    if not diff:
        for path in outcome.changed:
            print(f"changed {os.path.relpath(path)}")
        print(f"{len(outcome.changed)} of {outcome.seen} files changed", file=sys.stderr)
    if outcome.problems:
        return 2
    return 1 if diff and outcome.changed else 0

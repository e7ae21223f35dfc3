"""`gpulint snapshot`: what is in PyTorch's memory snapshots, and what other settings would have changed."""

from __future__ import annotations

from typing import Any

import click

from gpulint.cli._options import Given, GroupedCommand, colour, output_format, quiet, report, under

_what = under("What to show")
_tried = under("What if")


@click.command(cls=GroupedCommand)
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@_what("--device", type=click.IntRange(min=0), help="Only this GPU.")
@_what(
    "--depth", type=click.IntRange(min=1), default=1, help="So many of the program's own lines of each stack."
)
@_what("--full", is_flag=True, help="Whole stacks, torch's lines too.")
@_what("--top", type=click.IntRange(min=1), default=10, help="Rows of each table.")
@_tried(
    "--what-if",
    "what_if",
    is_flag=False,
    flag_value="sensible settings",  # `_snapshot.SOME`
    multiple=True,
    metavar="[SETTINGS]",
    help="Play the trace under these allocator settings, the best first; may be given again. Without a value: some that are sensible.",
)
@_tried(
    "--capacity",
    metavar="SIZE",
    help="What torch may reserve on the card (79GiB); by default what an out-of-memory error in the trace tells.",
)
@_tried("--card", metavar="NAME", help="The capacity of a card by its name: H100, A100-40GB, RTX4090.")
@output_format("text", "json", heading="Output")
@report("Output")
@colour("Output")
@quiet("Output")
def command(**given: Any) -> int:
    """Read memory snapshots (FILE is what torch.cuda.memory._dump_snapshot wrote, gzip or not; - is standard input): what makes the peak, line by line,
    what stays, where reserved memory lies idle, and between several snapshots what grew.

    Nothing in FILE is run, and torch is not needed. With --what-if: what would be reserved under other settings.

    Exit status: 0, or 2 where a FILE is no snapshot.
    """
    from gpulint.cli.commands import _snapshot

    return _snapshot.perform(Given(**given))

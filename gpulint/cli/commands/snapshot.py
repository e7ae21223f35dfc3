"""`gpulint snapshot`: what is in PyTorch's memory snapshots, and what other settings would have changed."""

from __future__ import annotations

import os
import time
from functools import partial
from itertools import pairwise
from typing import Any

import click

from gpulint.allocator.cards import MEMORY, memory_of
from gpulint.allocator.settings import check_settings
from gpulint.cli._errors import Failed, Line, as_error
from gpulint.cli._options import SIZE, Given, GroupedCommand, Heading, tell, write_report
from gpulint.reports.snapshot import as_json, document
from gpulint.snapshot import Asked, Summary, difference_between, summary_of
from gpulint.snapshot.reading import NotASnapshot, read
from gpulint.snapshot.whatif import SENSIBLE
from gpulint.units import format_bytes

CONTEXT = 2**29  # bytes of a card for the CUDA context, which is not torch's to reserve
SOME = "sensible settings"  # what --what-if stands for without a value

_what = Heading("What to show")
_tried = Heading("What if")
_output = Heading("Output")


@click.command(cls=GroupedCommand)
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@_what.count("--device", "Only this GPU.", least=0)
@_what.count("--depth", "So many of the program's own lines of each stack.", default=1)
@_what.flag("--full", "Whole stacks, torch's lines too.")
@_what.count("--top", "Rows of each table.", default=10)
@_tried(
    "--what-if [SETTINGS]",
    "Play the trace under these allocator settings, the best first; may be given again. Without a value: some that are sensible.",
    is_flag=False,
    flag_value=SOME,
    multiple=True,
)
@_tried(
    "--capacity SIZE",
    "What torch may reserve on the card (79GiB); by default what an out-of-memory error in the trace tells.",
    type=SIZE,
)
@_tried("--card NAME", "The capacity of a card by its name: H100, A100-40GB, RTX4090.")
@_output.output_format("text", "json")
@_output.report
@_output.colour
@_output.quiet
def command(**given: Any) -> int:
    """Read memory snapshots (FILE is what torch.cuda.memory._dump_snapshot wrote, gzip or not; - is standard input): what makes the peak, line by line,
    what stays, where reserved memory lies idle, and between several snapshots what grew.

    Nothing in FILE is run, and torch is not needed. With --what-if: what would be reserved under other settings.

    Exit status: 0, or 2 where a FILE is no snapshot.
    """
    request = Given(**given)
    depth = 0 if request.full else request.depth
    asked = Asked(depth, request.device, _settings(request), _capacity(request))
    line = Line(request.quiet, 0.5, 0.2)
    try:
        with as_error(Failed, NotASnapshot, ValueError):
            summaries = [_summary(path, asked, line) for path in request.files]
    except OSError as error:
        raise Failed(f"{error.filename or request.files[0]}: {error.strerror or error}") from error
    finally:
        line.clear()
    differences = [difference_between(one, other) for one, other in pairwise(summaries)]
    made = partial(document, summaries, differences, request.top)
    tell(request, made, partial(as_json, summaries, differences))
    write_report(request.report, made)
    return 0


def _settings(request: Given) -> tuple[str, ...] | None:
    """The settings to try. Raises click.UsageError for what is none."""
    if not request.what_if:
        if request.capacity is not None or request.card is not None:
            raise click.UsageError(
                "--capacity and --card say what has to be enough: use them with --what-if."
            )
        return None
    found: dict[str, None] = {}
    for text in request.what_if:
        if text == SOME:
            found |= dict.fromkeys(SENSIBLE)
            continue
        text = "" if text == "default" else text
        try:
            check_settings(text)
        except ValueError as error:
            hint = "; FILE stands before --what-if" if os.path.exists(text) else ""
            raise click.UsageError(f"--what-if {text}: {error}{hint}.") from error
        found[text] = None
    return tuple(found)


def _capacity(request: Given) -> int | None:
    from gpulint.config import did_you_mean

    if request.capacity is not None and request.card is not None:
        raise click.UsageError("--capacity and --card say the same; leave one out.")
    if request.card is None:
        return request.capacity  # type: ignore[no-any-return]
    memory = memory_of(request.card)
    if memory is None:
        near = did_you_mean(request.card, list(MEMORY))
        known = near or f"; known are {', '.join(MEMORY)}, and --capacity takes a size"
        raise click.UsageError(f'--card: no card "{request.card}" is known{known}')
    return memory - CONTEXT


def _summary(path: str, asked: Asked, line: Line) -> Summary:
    """What a snapshot says, with a line on how far it is read."""
    name, began = os.path.basename(path), time.monotonic()

    def reading(done: int, total: int) -> None:
        part = f"{done / total:.0%}" if total else format_bytes(done)
        line.say(f"reading {name}: {part}, {time.monotonic() - began:.0f} s")

    recording = read(path, reading)
    line.say(f"looking at {name}", at_once=True)
    return summary_of(
        recording, path, asked, lambda what: line.say(f"playing the trace under {what}", at_once=True)
    )

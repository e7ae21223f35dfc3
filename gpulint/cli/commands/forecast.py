"""`gpulint forecast`: will it fit? Runs a script without a GPU and says what it would take on one."""

from __future__ import annotations

from typing import Any

import click

from gpulint.cli import _options as shared

_what = shared.under("What to forecast")
_more = shared.under("What else to try")
_output = shared.under("Output")


@click.command(
    cls=shared.GroupedCommand,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@shared.script(required=False, default="")
@_what(
    "--card",
    metavar="CARD",
    default="h200",
    show_default=True,
    help="The card: h200, h100, a100-80, a100-40, l4, t4, v100, rtx4090, rtx3090, a size like 24GiB, or a file of --calibrate.",
)
@shared.module("What to forecast")
@_what(
    "--steps",
    type=click.IntRange(min=3),
    default=20,
    help="Train so many steps in one epoch at most; fewer where they are all alike.",
)
@_what(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    help="Forecast from what was seen after this time.",
)
@_what(
    "--alloc-conf",
    metavar="SETTINGS",
    help="Allocator settings, as in PYTORCH_ALLOC_CONF; by default SCRIPT's own or the environment's.",
)
@shared.python("What to forecast")
@_more(
    "--find-batch",
    metavar="OPTION",
    help="Find the largest value of this option of SCRIPT's that fits: --batch-size, or batch_size= where they are joined.",
)
@_more(
    "--changes",
    is_flag=True,
    help="Forecast SCRIPT with each of several changes, and rank them by what they save.",
)
@_more(
    "--calibrate",
    type=shared.WRITTEN,
    help="Measure the card of this machine instead, and write its constants to FILE, for --card.",
)
@_output(
    "--max-peak",
    type=shared.SIZE,
    help="Exit with 1 where the process may take more than this (80GiB); by default what the card has.",
)
@shared.output_format("text", "json", heading="Output")
@shared.report("Output")
@_output("-s", "--show-output", is_flag=True, help="Let SCRIPT's own output through, to standard error.")
@shared.colour("Output")
@shared.quiet("Output")
def command(**given: Any) -> int:
    """Say what SCRIPT would take on a GPU, on a machine without one.

    SCRIPT runs unchanged, with its arguments, in a process of its own, in which tensors on the card are faked: its data is
    read, its model is built, steps are taken, and every allocation is recorded; no result is computed, and nothing that
    torch saves is written. The allocations are played through a model of torch's allocator.

    Exit status: 0 it fits, 1 it does not or may not, takes more than --max-peak, or was not reached as a whole, 2 wrong use or SCRIPT failed.
    """
    from gpulint.cli.commands import _forecast

    return _forecast.perform(given)

"""`gpulint forecast`: will it fit? Runs a script without a GPU and says what it would take on one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from gpulint.allocator.settings import check_settings
from gpulint.cli._errors import Failed, as_error, say
from gpulint.cli._options import (
    SIZE,
    WRITTEN,
    Given,
    GroupedCommand,
    Heading,
    print_last_words,
    say_what_went_to,
    script,
    taken,
    tell,
    write_report,
)
from gpulint.forecasting.api import Say, calibrate, forecast_with
from gpulint.forecasting.cards import Card, UnknownCard, card_for
from gpulint.forecasting.recorder import ForecastError, Program
from gpulint.forecasting.result import Forecast
from gpulint.reports.forecast import as_json, document
from gpulint.units import format_bytes

_what = Heading("What to forecast")
_more = Heading("What else to try")
_output = Heading("Output")


@click.command(
    cls=GroupedCommand, context_settings={"allow_interspersed_args": False}, options_metavar="[OPTIONS]"
)
@script(required=False, default="")
@_what(
    "--card CARD",
    "The card: h200, h100, a100-80, a100-40, l4, t4, v100, rtx4090, rtx3090, a size like 24GiB, or a file of --calibrate.",
    default="h200",
    show_default=True,
)
@_what.module
@_what.count(
    "--steps",
    "Train so many steps in one epoch at most; fewer where they are all alike.",
    least=3,
    default=20,
)
@_what.amount("--timeout", "Forecast from what was seen after this time.", above=True, default=600.0)
@_what(
    "--alloc-conf SETTINGS",
    "Allocator settings, as in PYTORCH_ALLOC_CONF; by default SCRIPT's own or the environment's.",
)
@_what.python
@_more(
    "--find-batch OPTION",
    "Find the largest value of this option of SCRIPT's that fits: --batch-size, or batch_size= where they are joined.",
)
@_more.flag("--changes", "Forecast SCRIPT with each of several changes, and rank them by what they save.")
@_more(
    "--calibrate",
    "Measure the card of this machine instead, and write its constants to FILE, for --card.",
    type=WRITTEN,
)
@_output(
    "--max-peak",
    "Exit with 1 where the process may take more than this (80GiB); by default what the card has.",
    type=SIZE,
)
@_output.output_format("text", "json")
@_output.report
@_output.flag("-s", "--show-output", "Let SCRIPT's own output through, to standard error.")
@_output.colour
@_output.quiet
def command(**given: Any) -> int:
    """Say what SCRIPT would take on a GPU, on a machine without one.

    SCRIPT runs unchanged, with its arguments, in a process of its own, in which tensors on the card are faked: its data is
    read, its model is built, steps are taken, and every allocation is recorded; no result is computed, and nothing that
    torch saves is written. The allocations are played through a model of torch's allocator.

    Exit status: 0 it fits, 1 it does not or may not, takes more than --max-peak, or was not reached as a whole, 2 wrong use or SCRIPT failed.
    """
    program = Program(**taken(Program, given))
    request = Given(program=program, **given)
    if request.calibrate is not None:
        return _calibrate(request, request.calibrate)
    if not program.target:
        raise click.UsageError("name a script to forecast.")
    card = _card(request)
    if not request.quiet:
        say_what_went_to(program.target, program.arguments)
    if not program.module and program.target.endswith(".ipynb"):
        from gpulint.cli._notebook import cell_script

        with cell_script(program.target) as cells:
            program = replace(program, target=cells.path, folder=cells.home)
            return _perform(request.but(program=program), card, cells.as_measured)
    return _perform(request, card, lambda forecast: forecast)


def _perform(request: Given, card: Card, told: Callable[[Forecast], Forecast]) -> int:
    progress: Say = (lambda _: None) if request.quiet else say
    wanted = request.alloc_conf, request.find_batch, request.changes
    try:
        forecast = told(forecast_with(request.program, card, *wanted, progress))
    except ForecastError as error:
        print_last_words(error.details)
        raise Failed(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    tell(request, lambda: document(forecast), lambda: as_json(forecast))
    write_report(request.report, lambda: document(forecast))
    return _status(request, forecast)


def _calibrate(request: Given, path: str) -> int:
    """Measure the card of this machine and write its file."""
    from gpulint.atomic import write_atomic

    with as_error(Failed, ForecastError):
        found = calibrate(request.program.python)
    with as_error(click.UsageError, OSError, of=f"--calibrate {path}"):
        write_atomic(path, (json.dumps(found, indent=1) + "\n").encode())
    print(
        f"{found['label']}, torch {found['torch']}: {format_bytes(found['context'])} of context, written to {path}"
    )
    return 0


def _card(request: Given) -> Card:
    with as_error(click.UsageError, ValueError, of="--alloc-conf"):
        check_settings(request.alloc_conf or "")
    with as_error(click.UsageError, UnknownCard, of="--card"):
        return card_for(request.card)


def _status(request: Given, forecast: Forecast) -> int:
    if request.max_peak is not None:
        return 1 if forecast.process.high > request.max_peak or forecast.fits == "unknown" else 0
    return 0 if forecast.fits == "yes" else 1

"""What `gpulint forecast` does with its options: forecasts, reports, exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from gpulint.allocator.settings import check_settings
from gpulint.cli._errors import Failed, as_error, say
from gpulint.cli._options import Given, print_last_words, say_what_went_to, taken, tell, write_report
from gpulint.forecasting.api import forecast_with
from gpulint.forecasting.calibrating import calibrate
from gpulint.forecasting.cards import Card, UnknownCard, card_for
from gpulint.forecasting.recorder import ForecastError, Program
from gpulint.forecasting.result import Forecast
from gpulint.reports.forecast import as_json, document
from gpulint.units import format_bytes


def perform(given: dict[str, Any]) -> int:
    """Forecast, tell, write the report; the exit status."""
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
    try:
        forecast = told(
            forecast_with(
                request.program,
                card,
                request.alloc_conf,
                request.find_batch,
                request.changes,
                (lambda _: None) if request.quiet else say,
            )
        )
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

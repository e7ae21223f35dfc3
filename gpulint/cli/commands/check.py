"""`gpulint check`: lint files, and fix them."""

from __future__ import annotations

from typing import Any

import click

from gpulint.cli._grouped import GroupedCommand, codes, heading
from gpulint.reports import FORMATS

_rules = heading("Rules")
_fixing = heading("Fixing")
_files = heading("Files")
_output = heading("Output")
_running = heading("Running")
_CODES = "CODES"
_CACHE_DIR = "GPULINT_CACHE_DIR"
_WHEN = click.Choice(["auto", "always", "never"])
_CONFIDENCE = click.Choice(["high", "medium", "low"])
_LEVEL = click.Choice(["error", "warning", "info", "never"])
_FORMATS = ", ".join(FORMATS) + "."


def _jobs(_: click.Context, __: click.Parameter, value: int) -> int:
    if value < 0:
        raise click.BadParameter("must be 0 or more.")
    return value


def _some_codes(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    return codes(context, parameter, values) if values else None


def _patterns(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    if not all(value.strip() for value in values):
        raise click.BadParameter("is empty; give a pattern such as build/ or leave the option out.")
    return values


@click.command(cls=GroupedCommand, short_help="Find mistakes in files, and fix them: the default.")
@click.argument("paths", nargs=-1, type=click.Path())
@_rules(
    "--select",
    metavar=_CODES,
    multiple=True,
    callback=_some_codes,
    help="Only these rules: codes or prefixes, or ALL.",
)
@_rules("--extend-select", metavar=_CODES, multiple=True, callback=codes, help="These rules too.")
@_rules("--ignore", metavar=_CODES, multiple=True, callback=codes, help="Not these rules.")
@_rules(
    "--confidence",
    metavar="LEVEL",
    type=_CONFIDENCE,
    help="high, medium (one doubt) or low (more).",
)
@_rules("--target-torch", metavar="VERSION", help="Oldest torch version the code must work with.")
@_fixing("--fix", is_flag=True, help="Apply safe fixes.")
@_fixing("--unsafe-fixes", is_flag=True, help="With --fix or --diff: unsafe ones too.")
@_fixing("--diff", is_flag=True, help="Print what --fix would change; change nothing.")
@_fixing("--add-ignore", is_flag=True, help="Silence findings by comments in the code.")
@_files(
    "--exclude",
    metavar="PATTERN",
    multiple=True,
    callback=_patterns,
    help="Leave out, instead of the default excludes.",
)
@_files("--extend-exclude", metavar="PATTERN", multiple=True, callback=_patterns, help="Leave out too.")
@_files("--force-exclude", is_flag=True, help="Leave out excluded files even when named.")
@_files("--stdin-filename", metavar="FILE", help="Name of what is read from standard input (-).")
@_output("--output-format", metavar="FORMAT", type=click.Choice(FORMATS), default="text", help=_FORMATS)
@_output("--output-file", metavar="FILE", type=click.Path(dir_okay=False), help="Write them to FILE.")
@_output("--statistics", is_flag=True, help="Count findings by rule.")
@_output(
    "--color",
    "colour",
    metavar="WHEN",
    type=_WHEN,
    default="auto",
    help="auto, always or never; NO_COLOR holds.",
)
@_output("-q", "--quiet", is_flag=True, help="Findings only, no summary.")
@_output("-v", "--verbose", is_flag=True, help="Say what was skipped and what took how long.")
@_running("--config", metavar="FILE", type=click.Path(), help="This configuration, not the nearest.")
@_running("--isolated", is_flag=True, help="No configuration files.")
@_running(
    "--baseline", metavar="FILE", type=click.Path(dir_okay=False), help="Only findings not in FILE count."
)
@_running("--write-baseline", is_flag=True, help="Accept all findings, in gpulint-baseline.json.")
@_running("--fail-on", metavar="LEVEL", type=_LEVEL, help="Exit with 1 from: error, warning, info, never.")
@_running("--exit-zero", is_flag=True, help="Exit with 0 in spite of findings.")
@_running("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@_running(
    "-j", "--jobs", type=click.INT, default=0, callback=_jobs, metavar="N", help="Processes; 0 is one a core."
)
@_running("--no-cache", is_flag=True, help="Neither read nor write the cache.")
@_running(
    "--cache-dir",
    metavar="DIR",
    type=click.Path(file_okay=False),
    envvar=_CACHE_DIR,
    help="Where the cache is.",
)
def command(**given: Any) -> int:
    """Check files, and the Python files and notebooks below directories (by default the current one).

    Exit status: 0 clean, 1 findings left, 2 wrong use, wrong configuration or failure.
    """
    from gpulint.cli._check import perform
    from gpulint.cli._request import Request

    return perform(Request(**given))

"""`gpulint check`: lint files, and fix them."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from gpulint.cli import _options as shared
from gpulint.config import Overrides
from gpulint.reports import FORMATS

_FIXING = "Fixing (--no-fix and the like undo what a configuration sets)"
_rules = shared.under("Rules")
_fixing = shared.under(_FIXING)
_files = shared.under("Files")
_output = shared.under("Output")
_running = shared.under("Running")
_LEVEL = click.Choice(["error", "warning", "info", "never"])


def _jobs(_: click.Context, __: click.Parameter, value: int) -> int:
    if value < 0:
        raise click.BadParameter("must be 0 or more.")
    return value


def _patterns(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    if not all(value.strip() for value in values):
        raise click.BadParameter("is empty; give a pattern such as build/ or leave the option out.")
    return values


_excluding = partial(_files, metavar="PATTERN", multiple=True, callback=_patterns)


def _per_file(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, tuple[str, ...]] | None:
    """`tests/*:GPU201,GPU5,old.py:ALL`: a code without a pattern goes with the pattern before it."""
    found: dict[str, tuple[str, ...]] = {}
    pattern = ""
    for part in ",".join(values).split(",") if values else ():
        before, colon, code = part.rpartition(":")
        pattern = before.strip() if colon else pattern
        if not pattern:
            raise click.BadParameter(f"expected a pattern before {part!r}, such as 'tests/*:GPU201'.")
        found[pattern] = (*found.get(pattern, ()), *shared.codes(context, parameter, (code,)))
    return found or None


@click.command(cls=shared.GroupedCommand)
@click.argument("paths", nargs=-1, type=click.Path())
@shared.rules("Rules", unset=True)("--select", help="Only these rules: codes, prefixes, names or ALL.")
@shared.rules("Rules")("--extend-select", help="These rules too.")
@shared.rules("Rules")("--ignore", "--extend-ignore", help="Not these rules.")
@_rules(
    "--per-file-ignores",
    metavar="PATTERN:CODES",
    multiple=True,
    callback=_per_file,
    help="Not these in files that match.",
)
@_rules(
    "--confidence",
    metavar="LEVEL",
    type=shared.CONFIDENCE,
    help="high, or low (also with doubts).",
)
@_rules("--target-torch", metavar="VERSION", help="Oldest torch version the code must work with.")
@_fixing("--fix/--no-fix", default=None, help="Apply safe fixes.")
@_fixing("--fix-only/--no-fix-only", default=None, help="Apply them; tell of nothing that is left.")
@_fixing("--unsafe-fixes/--no-unsafe-fixes", default=None, help="Fix, show and count unsafe ones too.")
@_fixing("--show-fixes/--no-show-fixes", default=None, help="List what was fixed.")
@shared.rules(_FIXING, unset=True)("--fixable", help="Fix only what these rules find.")
@shared.rules(_FIXING)("--unfixable", help="Fix nothing that these rules find.")
@_fixing("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 where something was fixed.")
@_fixing("--diff", is_flag=True, help="Print what --fix would change; change nothing.")
@_fixing("--add-ignore", is_flag=True, help="Silence findings by comments in the code.")
@_excluding("--exclude", help="Leave out, instead of the default excludes.")
@_excluding("--extend-exclude", help="Leave out too.")
@_files("--force-exclude", is_flag=True, help="Leave out excluded files even when named.")
@_files("--show-files", is_flag=True, help="List the files that would be checked; check none.")
@_files("--show-settings", is_flag=True, help="Print the settings in force for the first path.")
@_files("--stdin-filename", metavar="FILE", help="Name of what is read from standard input (-).")
@shared.output_format(
    *FORMATS, help=", ".join(FORMATS) + ".", default=None, envvar="GPULINT_OUTPUT_FORMAT", heading="Output"
)
@_output("--output-file", type=shared.FILE, envvar="GPULINT_OUTPUT_FILE", help="Write them to FILE.")
@_output("--statistics", is_flag=True, help="Count findings by rule.")
@shared.colour("Output")
@_output("-q", "--quiet", is_flag=True, help="Findings only, no summary.")
@_output("-v", "--verbose", is_flag=True, help="Say what was skipped and what took how long.")
@shared.configuration("Running")
@_running("--baseline", type=shared.FILE, help="Only findings not in FILE count.")
@_running("--write-baseline", is_flag=True, help="Accept all findings, in gpulint-baseline.json.")
@_running(
    "--fail-on", metavar="LEVEL", type=_LEVEL, help="Fail from error, warning (default), info or never."
)
@_running("--exit-zero", is_flag=True, help="Exit with 0 in spite of findings.")
@_running("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@_running(
    "-j", "--jobs", type=click.INT, default=0, callback=_jobs, metavar="N", help="Processes; 0 is one a core."
)
@_running("--no-cache", is_flag=True, envvar="GPULINT_NO_CACHE", help="Neither read nor write the cache.")
@shared.cache_dir("Running", "Where the cache is.")
def command(**given: Any) -> int:
    """Check files, and the Python files and notebooks below directories (by default the current one).

    Exit status: 0 nothing at or above --fail-on, 1 findings, 2 wrong use (a path that is not there), wrong
    configuration or failure.
    """
    from gpulint.cli._check import perform
    from gpulint.cli._reporting import Request

    overrides = Overrides(**shared.taken(Overrides, given), settings=given["config"].settings)
    return perform(Request(overrides=overrides, **given))

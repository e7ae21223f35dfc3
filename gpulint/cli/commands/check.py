"""`gpulint check`: lint files, and fix them."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from gpulint.cli._options import CONFIDENCE, FILE, GroupedCommand, Heading, codes, taken
from gpulint.config import Overrides
from gpulint.reports import FORMATS

_rules = Heading("Rules")
_fixing = Heading("Fixing (--no-fix and the like undo what a configuration sets)")
_files = Heading("Files")
_output = Heading("Output")
_running = Heading("Running")
_LEVEL = click.Choice(["error", "warning", "info", "never"])


def _patterns(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    if not all(value.strip() for value in values):
        raise click.BadParameter("is empty; give a pattern such as build/ or leave the option out.")
    return values


_excluding = partial(_files, metavar="PATTERN", multiple=True, callback=_patterns)


def _jobs(_: click.Context, __: click.Parameter, value: int) -> int:
    if value < 0:
        raise click.BadParameter("must be 0 or more.")
    return value


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
        found[pattern] = (*found.get(pattern, ()), *codes(context, parameter, (code,)))
    return found or None


_per_file_ignores = partial(_rules, metavar="PATTERN:CODES", multiple=True, callback=_per_file)


@click.command(cls=GroupedCommand)
@click.argument("paths", nargs=-1, type=click.Path())
@_rules.rules("--select", "Only these rules: codes, prefixes, names or ALL.", unset=True)
@_rules.rules("--extend-select", "These rules too.")
@_rules.rules("--ignore", "--extend-ignore", "Not these rules.")
@_per_file_ignores("--per-file-ignores", "Not these in files that match.")
@_rules("--confidence LEVEL", "high, or low (also with doubts).", type=CONFIDENCE)
@_rules("--target-torch VERSION", "Oldest torch version the code must work with.")
@_fixing("--fix/--no-fix", "Apply safe fixes.", default=None)
@_fixing("--fix-only/--no-fix-only", "Apply them; tell of nothing that is left.", default=None)
@_fixing("--unsafe-fixes/--no-unsafe-fixes", "Fix, show and count unsafe ones too.", default=None)
@_fixing("--show-fixes/--no-show-fixes", "List what was fixed.", default=None)
@_fixing.rules("--fixable", "Fix only what these rules find.", unset=True)
@_fixing.rules("--unfixable", "Fix nothing that these rules find.")
@_fixing.flag("--exit-non-zero-on-fix", "Exit with 1 where something was fixed.")
@_fixing.flag("--diff", "Print what --fix would change; change nothing.")
@_fixing.flag("--add-ignore", "Silence findings by comments in the code.")
@_excluding("--exclude", "Leave out, instead of the default excludes.")
@_excluding("--extend-exclude", "Leave out too.")
@_files.flag("--force-exclude", "Leave out excluded files even when named.")
@_files.flag("--show-files", "List the files that would be checked; check none.")
@_files.flag("--show-settings", "Print the settings in force for the first path.")
@_files("--stdin-filename FILE", "Name of what is read from standard input (-).")
@_output.output_format(*FORMATS, said=", ".join(FORMATS) + ".", default=None, envvar="GPULINT_OUTPUT_FORMAT")
@_output("--output-file", "Write them to FILE.", type=FILE, envvar="GPULINT_OUTPUT_FILE")
@_output.flag("--statistics", "Count findings by rule.")
@_output.colour
@_output.flag("-q", "--quiet", "Findings only, no summary.")
@_output.flag("-v", "--verbose", "Say what was skipped and what took how long.")
@_running.configuration
@_running("--baseline", "Only findings not in FILE count.", type=FILE)
@_running.flag("--write-baseline", "Accept all findings, in gpulint-baseline.json.")
@_running("--fail-on LEVEL", "Fail from error, warning (default), info or never.", type=_LEVEL)
@_running.flag("--exit-zero", "Exit with 0 in spite of findings.")
@_running.flag("--watch", "Check again whenever a file changes, until Ctrl-C.")
@_running("-j", "--jobs N", "Processes; 0 is one a core.", type=int, default=0, callback=_jobs)
@_running.flag("--no-cache", "Neither read nor write the cache.", envvar="GPULINT_NO_CACHE")
@_running.cache_dir("Where the cache is.")
def command(**given: Any) -> int:
    """Check files, and the Python files and notebooks below directories (by default the current one).

    Exit status: 0 nothing at or above --fail-on, 1 findings, 2 wrong use (a path that is not there), wrong
    configuration or failure.
    """
    from gpulint.cli._check import Request, perform

    overrides = Overrides(**taken(Overrides, given), settings=given["config"].settings)
    return perform(Request(overrides=overrides, **given))

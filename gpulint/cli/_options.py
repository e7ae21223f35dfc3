"""What several commands take alike: rules, a configuration, whether to colour."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from gpulint.cli._grouped import GroupedOption, codes
from gpulint.config import ConfigResolver, Overrides

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
PathLike = TypeVar("PathLike", "str | None", "Path | None")

CODES = "CODES"
CONFIDENCE = click.Choice(["high", "medium", "low"])


@dataclass(frozen=True, slots=True)
class Configured:
    """What `--config` was given: one file at most, and settings as they would stand in it."""

    file: str | None = None
    settings: tuple[str, ...] = ()

    def resolver(self, isolated: bool) -> ConfigResolver:
        """Answers which configuration is in force. Raises `ConfigError`."""
        return ConfigResolver(self.file, isolated, Overrides(settings=self.settings))


def _configured(_: click.Context, __: click.Parameter, values: Sequence[str]) -> Configured:
    files = [value for value in values if os.path.isfile(value)]
    settings = [value for value in values if value not in files]
    for value in settings:
        if "=" not in value:
            raise click.BadParameter(
                f"{value} does not exist; name a file, or a setting: 'ignore = [\"GPU5\"]'"
            )
    if len(files) > 1:
        raise click.BadParameter(f"takes one file, and was given {' and '.join(files)}")
    return Configured(files[0] if files else None, tuple(settings))


def configuration(heading: str = "Options") -> Callable[[Decorated], Decorated]:
    """The options `--config` (as `config`, a `Configured`) and `--isolated`."""

    def decorated(command: Decorated) -> Decorated:
        isolated = click.option(
            "--isolated", is_flag=True, cls=GroupedOption, heading=heading, help="No configuration files."
        )
        config = click.option(
            "--config",
            metavar="FILE|SETTING",
            multiple=True,
            type=click.Path(),
            envvar="GPULINT_CONFIG",
            callback=_configured,
            cls=GroupedOption,
            heading=heading,
            help="This file, not the nearest; or 'key = value'.",
        )
        return config(isolated(command))

    return decorated


def some_codes(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    """`codes`, or None where the option is not given."""
    return codes(context, parameter, values) if values else None


def can_be_written(_: click.Context, __: click.Parameter, path: PathLike) -> PathLike:
    """A file that is written after a long run, whose folder had better be there before it."""
    folder = os.path.dirname(os.path.abspath(path)) if path else os.curdir
    if not os.path.isdir(folder):
        raise click.BadParameter(f"there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise click.BadParameter(f"{folder} cannot be written to")
    return path


def size(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Bytes, from `512B` or `1.5MiB`; None where the option is not given."""
    from gpulint.units import parse_bytes

    if value is None:
        return None

    try:
        return parse_bytes(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def size_if_given(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """`size`, or None where the option is not given."""
    return None if value is None else size(context, parameter, value)


def colour(heading: str) -> Callable[[Decorated], Decorated]:
    """The option `--color`, as `colour`."""
    return click.option(
        "--color",
        "colour",
        metavar="WHEN",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        cls=GroupedOption,
        heading=heading,
        help="auto, always or never; NO_COLOR holds.",
    )

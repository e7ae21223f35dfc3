"""Sentences on standard error, and a line that tells how far something is. Of wrong use of the command line: where, what was given, what would be right."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Iterator
from typing import Final

import click
from click.core import ParameterSource

_COMMAND: Final = re.compile(r"No such command '(?P<given>[^']*)'")
_CHOICE: Final = re.compile(r"'(?P<given>.*)' is not one of .*", re.DOTALL)


class Failed(click.ClickException):
    """What could not be done: why, in one sentence."""

    exit_code = 2


@contextlib.contextmanager
def as_error(kind: type[click.ClickException], *errors: type[Exception], of: str = "") -> Iterator[None]:
    """Errors within as one of the command line's, of the option or file `of`."""
    try:
        yield
    except errors as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise kind(f"{of}: {why}" if of else str(why)) from error


def say(message: str) -> None:
    """One line behind the program's name. What stands in it, names of files and of settings, is data of whoever wrote it: nothing
    that a terminal would obey."""
    if not message.isprintable():
        from gpulint.reports.layout import printable

        message = printable(message)
    with contextlib.suppress(OSError):
        print(f"gpulint: {message}", file=sys.stderr, flush=True)


class Line:
    """One line on standard error that is written over, from `after` seconds on and every `every` seconds; on a terminal alone."""

    def __init__(self, quiet: bool, after: float, every: float) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._every, self._next = every, time.monotonic() + after
        self._written = False

    def say(self, text: str, at_once: bool = False) -> None:
        """Write `text`, unless the line was written just now."""
        now = time.monotonic()
        if self._shown and (at_once or now >= self._next):
            self._next, self._written = now + self._every, True
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take it away."""
        if self._written:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def help_text(error: click.ClickException) -> str:
    """The help that is asked for by giving nothing at all to a command that needs something; empty for other errors."""
    bare = getattr(click.exceptions, "NoArgsIsHelpError", None)  # click before 8.2 shows the help by itself
    return error.format_message() if bare is not None and isinstance(error, bare) else ""


def sentence(error: click.ClickException) -> str:
    """What to say of an error that click or a command has raised."""
    if isinstance(error, Failed):
        return error.message
    if isinstance(error, click.NoSuchOption):
        return _no_such_option(error)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{_metavar(error.param, error.ctx)} is missing{_see(error.ctx)}"
    if isinstance(error, click.BadParameter):
        return f"{_place(error)}: {_wrong_value(error)}"
    if (
        isinstance(error, click.UsageError)
        and error.ctx is not None
        and isinstance(error.ctx.command, click.Group)
    ):
        unknown = _COMMAND.match(error.message)
        if unknown is not None:
            return _no_such_command(unknown["given"], error.ctx, error.ctx.command)
    return _as_clause(error.format_message())


def _no_such_command(given: str, ctx: click.Context, group: click.Group) -> str:
    from gpulint.config import did_you_mean

    near = did_you_mean(given, group.list_commands(ctx))
    return f'{ctx.command_path} has no command "{given}"{near or _see(ctx)}'


def _no_such_option(error: click.NoSuchOption) -> str:
    from gpulint.config import did_you_mean

    params = error.ctx.command.params if error.ctx is not None else []
    names = [name for one in params for name in (*one.opts, *one.secondary_opts) if name.startswith("--")]
    near = did_you_mean(error.option_name, names).replace('"', "")
    return f"there is no option {error.option_name}{near or _see(error.ctx)}"


def _wrong_value(error: click.BadParameter) -> str:
    from gpulint.config import did_you_mean

    choice = getattr(error.param, "type", None)
    given = _CHOICE.fullmatch(error.message)
    if not isinstance(choice, click.Choice) or given is None:
        return _as_clause(error.message)
    choices = [str(one) for one in choice.choices]
    near = did_you_mean(given["given"], choices)
    return f'expected one of {", ".join(choices)}, got "{given["given"]}"{near}'


def _place(error: click.BadParameter) -> str:
    """The option as it is written, or the variable that stands for it."""
    if isinstance(error.param_hint, str):
        return error.param_hint
    if error.param is None:
        return "the command line"
    source = error.ctx.get_parameter_source(error.param.name or "") if error.ctx is not None else None
    if source is ParameterSource.ENVIRONMENT and isinstance(error.param.envvar, str):
        return error.param.envvar
    return _metavar(error.param, error.ctx)


def _metavar(param: click.Parameter, ctx: click.Context | None) -> str:
    if isinstance(param, click.Option):
        return next((name for name in param.opts if name.startswith("--")), param.opts[0])
    name = param.metavar or (param.name or "").upper()
    return name.removesuffix("...")


def _see(ctx: click.Context | None) -> str:
    return "" if ctx is None else f"; {ctx.command_path} --help shows what there is"


def _as_clause(message: str) -> str:
    """A message of click's as it stands behind a colon."""
    text = " ".join(message.split()).removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text

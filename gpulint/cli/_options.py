"""What several commands take alike: rules, a configuration, a script with its arguments, what they write and whether in colour; and
a --help that groups options under headings."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpulint.cli._errors import as_error, say
from gpulint.config import ConfigResolver, Overrides, shown_path

if TYPE_CHECKING:
    from gpulint.reports.document import Document

CONFIDENCE = click.Choice(["high", "low"])
_ALIAS = re.compile(r"(?<=\w\w), --[\w-]+")
_NAMES = 26  # columns for an option's names, a third of a narrow terminal; what is longer has its text on the next line

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class GroupedOption(click.Option):
    """An option with the heading it stands under. A number is a count, or seconds, where nothing else is said, and its default
    is shown."""

    def __init__(self, *args: Any, heading: str = "Options", **kwargs: Any) -> None:
        number = {click.IntRange: "N", click.FloatRange: "SECONDS"}.get(type(kwargs.get("type")))
        super().__init__(*args, **{"metavar": number, "show_default": number and True, **kwargs})
        self.heading = heading

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Without the name that takes it back: all of a heading have one then, and the heading says so. Nor with a second
        long name, which is for those who have another tool's in their fingers."""
        record = super().get_help_record(ctx)
        return record and (_ALIAS.sub("", record[0].partition(" / ")[0]), record[1])


class GroupedCommand(click.Command):
    """Writes one section for each heading, in the order in which the headings first occur; their texts start in one
    column."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "heading", "Help"), []).append(record)
        most = min(_NAMES, formatter.width // 3)
        written = (len(names) for records in sections.values() for names, _ in records)
        width = max((length for length in written if length <= most), default=0)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl([(names.ljust(width), text) for names, text in records], col_max=most)


def under(name: str) -> Callable[..., Callable[[Decorated], Decorated]]:
    """`click.option` for options under the heading `name`."""

    def option(*declarations: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
        return click.option(*declarations, cls=GroupedOption, heading=name, **attributes)

    return option


option = under("Options")


def rules(name: str, *, unset: bool = False) -> Callable[..., Callable[[Decorated], Decorated]]:
    """`click.option` for options under the heading `name` that take rules; where they are not given their value is (), or None where
    they leave it `unset`."""
    return partial(under(name), metavar="CODES", multiple=True, callback=_codes_or_none if unset else codes)


def codes(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The codes, prefixes and names of an option that may be given several times, each with several of them."""
    found: list[str] = []
    for value in values:
        named = [code.strip() for code in value.split(",") if code.strip()]
        if not named:
            raise click.BadParameter(
                "names no rule; give codes, prefixes or names such as GPU101,GPU2, or leave the option out"
            )
        found += named
    if all(code.isupper() for code in found):
        return tuple(found)
    from gpulint.lint.selection import codes_of, shipped_names

    return codes_of(found, shipped_names())


def _codes_or_none(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    return codes(context, parameter, values) if values else None


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
        option = under(heading)
        isolated = option("--isolated", is_flag=True, help="No configuration files.")
        config = option(
            "--config",
            metavar="FILE|SETTING",
            multiple=True,
            type=click.Path(),
            envvar="GPULINT_CONFIG",
            callback=_configured,
            help="This file, not the nearest; or 'key = value'.",
        )
        return config(isolated(command))

    return decorated


Options = TypeVar("Options", bound="Given")


class Given(SimpleNamespace):
    """The options of a command as given, by their names."""

    def but(self: Options, **changes: Any) -> Options:
        """The same with some others."""
        return type(self)(**{**vars(self), **changes})


def taken(record: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Those options whose names are fields of `record`, taken out of `given`."""
    return {one.name: given.pop(one.name) for one in fields(record) if one.name in given}


class Written(click.Path):
    """A file that is written after a long run, whose folder had better be there before it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from gpulint.atomic import target_of

        path = super().convert(value, param, ctx)
        try:
            folder = os.path.dirname(os.path.abspath(target_of(str(path)))) if value else os.curdir
        except OSError as error:
            self.fail(f"{error.strerror or error}")
        if not os.path.isdir(folder):
            self.fail(f"there is no folder {folder}")
        if not os.access(folder, os.W_OK):
            self.fail(f"{folder} cannot be written to")
        return path


class Size(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic in newer ones
    """Bytes, from `512B` or `1.5MiB`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from gpulint.units import parse_bytes

        try:
            return parse_bytes(value)
        except ValueError as error:
            self.fail(str(error))


FILE = click.Path(dir_okay=False)
WRITTEN = Written(dir_okay=False)
SIZE = Size()


def say_what_went_to(script: str, arguments: Sequence[str]) -> None:
    """That options which stand behind a script are the script's, where the command has such options too."""
    context = click.get_current_context()
    ours = {name for one in context.command.params for name in one.opts if name.startswith("--")}
    before_end = itertools.takewhile(lambda argument: argument != "--", arguments)
    given = dict.fromkeys(name for one in before_end if (name := one.partition("=")[0]) in ours)
    if given:
        went = f"{' and '.join(given)} went to {script}"
        stand = f"options of gpulint {context.info_name} stand before the script"
        say(f"{went}: {stand}")


# -- what is written -----------------------------------------------------------------------------------------


def output_format(
    *formats: str, help: str = "", heading: str = "Options", **attributes: Any
) -> Callable[[Decorated], Decorated]:
    """The option `--output-format`: one of these, by default the first."""
    said = help or f"{', '.join(formats[:-1])} or {formats[-1]}."
    given = {"default": formats[0], **attributes}
    return under(heading)("--output-format", metavar="FORMAT", type=click.Choice(formats), help=said, **given)


def report(heading: str) -> Callable[[Decorated], Decorated]:
    """The option `--report`, for `write_report`."""
    return under(heading)("--report", type=WRITTEN, help="Write an HTML report to FILE.")


def on_terminal(colour: str) -> tuple[bool, int | None]:
    """Whether standard output is written in colour, and its columns, None where it is no terminal."""
    from gpulint.reports.layout import colour_wanted

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return colour_wanted(sys.stdout, colour), columns


def print_last_words(text: str | None) -> None:
    """What a script that failed said last, on standard error, behind all that was printed."""
    sys.stdout.flush()
    if words := (text or "").rstrip():
        print(words[-20_000:], file=sys.stderr)


def as_json_option(said: str) -> Callable[[Decorated], Decorated]:
    """The option `--json`, as `as_json`, of commands that know no other format besides text."""
    return under("Options")("--json", "as_json", is_flag=True, help=said)


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2))


def tell(request: Given, document: Callable[[], Document], as_json: Callable[[], dict[str, Any]]) -> None:
    """Print a report in the format that was asked for."""
    if request.output_format == "json":
        print_json(as_json())
    elif request.output_format == "markdown":
        from gpulint.reports.markdown import markdown

        sys.stdout.write(markdown(document()))
    else:
        from gpulint.reports.terminal import write

        write(document(), sys.stdout, *on_terminal(request.colour))


def write_report(path: str | None, document: Callable[[], Document]) -> None:
    """Write a page to the file that --report names, and say so. Last of all: that the disk is full must cost nobody the rest.
    Raises click.UsageError."""
    if path is None:
        return
    from gpulint.atomic import write_atomic
    from gpulint.reports.page import page

    with as_error(click.UsageError, OSError, of=f"--report {path}"):
        write_atomic(path, page(document()).encode("utf-8"))
    say(f"report written to {shown_path(os.path.abspath(path))}")


def cache_dir(heading: str, said: str) -> Callable[[Decorated], Decorated]:
    """The option `--cache-dir`."""
    kind = click.Path(file_okay=False)
    return under(heading)("--cache-dir", metavar="DIR", type=kind, envvar="GPULINT_CACHE_DIR", help=said)


def script(**attributes: Any) -> Callable[[Decorated], Decorated]:
    """The arguments `target` and `arguments`, of commands that run a script."""

    def decorated(command: Decorated) -> Decorated:
        arguments = click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
        return click.argument("target", metavar="SCRIPT", **attributes)(arguments(command))

    return decorated


def module(heading: str) -> Callable[[Decorated], Decorated]:
    """The option `-m`."""
    return under(heading)("-m", "module", is_flag=True, help="SCRIPT is a module's name, as for python -m.")


def python(heading: str) -> Callable[[Decorated], Decorated]:
    """The option `--python`."""
    said = "The interpreter that runs SCRIPT; by default gpulint's own."
    return under(heading)("--python", metavar="PATH", default=sys.executable, help=said)


def quiet(heading: str) -> Callable[[Decorated], Decorated]:
    """The option `-q`, of commands that tell how far they are."""
    return under(heading)("-q", "--quiet", is_flag=True, help="No progress.")


def colour(heading: str) -> Callable[[Decorated], Decorated]:
    """The option `--color`, as `colour`."""
    when, said = click.Choice(["auto", "always", "never"]), "auto, always or never; NO_COLOR holds."
    return under(heading)("--color", "colour", metavar="WHEN", type=when, default="auto", help=said)

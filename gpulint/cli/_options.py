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
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpulint.cli._errors import as_error, say
from gpulint.config import CONFIDENCES, ConfigResolver, Overrides, shown_path

if TYPE_CHECKING:
    from gpulint.reports.document import Document

_ALIAS = re.compile(r"(?<=\w\w), --[\w-]+")
_NAMES = 26  # columns for an option's names, a third of a narrow terminal; what is longer has its text on the next line

Command = Callable[..., Any]
Decorator = Callable[[Command], Any]


class GroupedOption(click.Option):
    """An option with the heading it stands under. What it takes may stand behind its name: "--card CARD". A number is a count, or
    seconds, where nothing else is said, and its default is shown."""

    def __init__(self, declared: Sequence[str], heading: str = "Options", **attributes: Any) -> None:
        number = {click.IntRange: "N", click.FloatRange: "SECONDS"}.get(type(attributes.get("type")))
        names, _, taken = zip(*(name.partition(" ") for name in declared), strict=True)
        takes = next(filter(None, taken), number)
        super().__init__(names, **{"metavar": takes, "show_default": number and True, **attributes})
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
CONFIDENCE = click.Choice(CONFIDENCES)


# -- options ---------------------------------------------------------------------------------------------------


class Heading:
    """Declares the options under a heading of --help: called as `click.option` is, with the help as the last of the names. What
    several commands take has a method, each a decorator as well."""

    def __init__(self, title: str) -> None:
        self.title = title

    def __call__(self, *declared: str, **attributes: Any) -> Decorator:
        *names, said = declared
        return click.option(*names, cls=GroupedOption, heading=self.title, help=said, **attributes)

    def flag(self, *declared: str, **attributes: Any) -> Decorator:
        return self(*declared, is_flag=True, **attributes)

    def count(self, *declared: str, least: int = 1, **attributes: Any) -> Decorator:
        return self(*declared, type=click.IntRange(min=least), **attributes)

    def amount(self, *declared: str, least: float = 0, above: bool = False, **attributes: Any) -> Decorator:
        """A number with a fraction, of seconds where no `metavar` says of what; `above` the least, not the least itself."""
        return self(*declared, type=click.FloatRange(min=least, min_open=above), **attributes)

    def rules(self, *declared: str, unset: bool = False) -> Decorator:
        """Rules: where they are not given their value is (), or None where they leave it `unset`."""

        def given(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
            return None if unset and not values else codes(context, parameter, values)

        return self(*declared, metavar="CODES", multiple=True, callback=given)

    def configuration(self, command: Command) -> Any:
        """`--config` (as `config`, a `Configured`) and `--isolated`."""
        said = "This file, not the nearest; or 'key = value'."
        place = {"type": click.Path(), "envvar": "GPULINT_CONFIG", "callback": _configured}
        config = self("--config FILE|SETTING", said, multiple=True, **place)
        return config(self.flag("--isolated", "No configuration files.")(command))

    def cache_dir(self, said: str) -> Decorator:
        kind = click.Path(file_okay=False)
        return self("--cache-dir DIR", said, type=kind, envvar="GPULINT_CACHE_DIR")

    def module(self, command: Command) -> Any:
        return self.flag("-m", "module", "SCRIPT is a module's name, as for python -m.")(command)

    def python(self, command: Command) -> Any:
        said = "The interpreter that runs SCRIPT; by default gpulint's own."
        return self("--python PATH", said, default=sys.executable)(command)

    def output_format(self, *formats: str, said: str = "", **attributes: Any) -> Decorator:
        """One of these, by default the first."""
        said = said or f"{', '.join(formats[:-1])} or {formats[-1]}."
        given = {"metavar": "FORMAT", "type": click.Choice(formats), "default": formats[0], **attributes}
        return self("--output-format", said, **given)

    def as_json(self, said: str) -> Decorator:
        """For commands that know no other format besides text."""
        return self.flag("--json", "as_json", said)

    def report(self, command: Command) -> Any:
        """For `write_report`."""
        return self("--report", "Write an HTML report to FILE.", type=WRITTEN)(command)

    def colour(self, command: Command) -> Any:
        when, said = click.Choice(["auto", "always", "never"]), "auto, always or never; NO_COLOR holds."
        return self("--color WHEN", "colour", said, type=when, default="auto")(command)

    def quiet(self, command: Command) -> Any:
        """For commands that tell how far they are."""
        return self.flag("-q", "--quiet", "No progress.")(command)


option = Heading("Options")


def script(**attributes: Any) -> Decorator:
    """The arguments `target` and `arguments`, of commands that run a script."""

    def decorated(command: Command) -> Any:
        arguments = click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
        return click.argument("target", metavar="SCRIPT", **attributes)(arguments(command))

    return decorated


# -- what they are given ---------------------------------------------------------------------------------------


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


Options = TypeVar("Options", bound="Given")


class Given(SimpleNamespace):
    """The options of a command as given, by their names."""

    def but(self: Options, **changes: Any) -> Options:
        """The same with some others."""
        return type(self)(**{**vars(self), **changes})


def taken(record: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Those options whose names are fields of `record`, taken out of `given`."""
    return {one.name: given.pop(one.name) for one in fields(record) if one.name in given}


def refuse(*contradictions: tuple[object, str]) -> None:
    """Raises click.UsageError for the first that there is, in its words."""
    for there, said in contradictions:
        if there:
            raise click.UsageError(said)


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


# -- what they write -------------------------------------------------------------------------------------------


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


def leave_for_job(variable: str, text: str) -> None:
    """Add to a file of the GitHub job in which this runs: GITHUB_STEP_SUMMARY, whose Markdown its page shows, or GITHUB_OUTPUT, which
    later steps read."""
    path = os.environ.get(variable)
    if not path or not text:
        return
    try:
        with open(path, "a", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
            out.write(text)
    except OSError as error:
        say(f"{variable}: {error.strerror or error}")

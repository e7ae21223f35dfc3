"""A click command whose --help groups its options under headings."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

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


def heading(name: str) -> Callable[..., Callable[[Decorated], Decorated]]:
    """`click.option` for options under the heading `name`."""

    def option(*declarations: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
        return click.option(*declarations, cls=GroupedOption, heading=name, **attributes)

    return option


option = heading("Options")


def rules(name: str, *, unset: bool = False) -> Callable[..., Callable[[Decorated], Decorated]]:
    """`click.option` for options under the heading `name` that take rules; where they are not given their value is (), or None where
    they leave it `unset`."""
    return partial(heading(name), metavar="CODES", multiple=True, callback=_codes_or_none if unset else codes)


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

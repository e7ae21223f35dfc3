"""`gpulint explain`: why a line is reported, or is not."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import click

from gpulint.cli._dispatch import while_read
from gpulint.cli._errors import Failed, as_error
from gpulint.cli._options import Configured, on_terminal, option, print_json
from gpulint.cli.commands.rules import find
from gpulint.lint.explaining import SILENT, Explained, explain_text, line_of, notebook_of, sign_of
from gpulint.lint.selection import Selection
from gpulint.reports import place_in
from gpulint.reports.layout import Line, hanging, paint, printable, quoted
from gpulint.rule import RuleSet
from gpulint.source.files import FileError, decode, is_notebook, read_bytes
from gpulint.source.syntax import SourceError

_FORM = "FILE[:LINE]"
_LOCATION = re.compile(r"(?P<path>.+?)(?::cell (?P<cell>\d+))?(?::(?P<row>\d+)(?::(?P<column>\d+))?)?")


@click.command()
@click.argument("location", metavar=_FORM)
@option("--rule CODE", "codes", "Only this rule; may be repeated.", multiple=True)
@option.configuration
@option.output_format("text", "json")
def command(
    location: str, codes: tuple[str, ...], config: Configured, isolated: bool, output_format: str
) -> int:
    """Show every claim that was considered at a line, told or not, and what its questions were answered.

    A claim is told where no answer refutes it. In a notebook LINE is CELL:LINE, or the line in the file's JSON.
    Exit status: 0 something was considered, 1 nothing was, 2 wrong use.
    """
    place = _place(location)
    rules = _wanted(place.path, codes, config, isolated)
    with as_error(Failed, SourceError, FileError, of=f"{place.path} cannot be checked"):
        text = decode(place.path, read_bytes(place.path)).text
        explained = _at(place, explain_text(text, place.path, rules), text)
    with while_read():
        if output_format == "json":
            print_json([one.to_json() for one in explained])
        elif explained:
            _print(explained)
        else:
            click.echo(f"{location}: no rule in force considered anything here.")
    return 0 if explained else 1


@dataclass(frozen=True, slots=True)
class _Place:
    """What is asked about: a file, or one of its rows, or a cell of a notebook, or one of the cell's rows."""

    path: str
    row: int | None = None
    cell: int | None = None


def _place(location: str) -> _Place:
    """As findings are placed: FILE:ROW:COLUMN, FILE:cell CELL:ROW:COLUMN in a notebook, each without its end."""
    given = None if os.path.exists(location) else _LOCATION.fullmatch(location)
    path, *numbers = (location,) if given is None else given.group("path", "cell", "row", "column")
    if os.path.isdir(path):
        raise click.BadParameter(f"{path} is a directory; name one file in it", param_hint=_FORM)
    if not os.path.isfile(path):
        raise click.BadParameter(f"there is no file {path}", param_hint=_FORM)
    cell, row, column = (int(number) if number else None for number in numbers or (None,) * 3)
    if is_notebook(path) and cell is None and column is not None:
        cell, row = row, column
    if cell is not None and not is_notebook(path):
        raise click.BadParameter(f"{path} has no cells", param_hint=_FORM)
    if 0 in (cell, row):
        raise click.BadParameter("lines and cells count from 1", param_hint=_FORM)
    return _Place(path, row, cell)


def _at(place: _Place, explained: list[Explained], text: str) -> list[Explained]:
    """What stands at a place. A row without its cell is one of a notebook's JSON, as the formats for code hosts give it."""
    row = place.row
    if row is None:
        return [one for one in explained if place.cell in (None, one.cell)]
    if place.cell is None and is_notebook(place.path):
        in_file = notebook_of(text).file_row
        return [
            one
            for one in explained
            if in_file(one.cell or 0, one.row) <= row <= in_file(one.cell or 0, one.end_row)
        ]
    return [one for one in explained if one.cell == place.cell and one.is_at(row)]


def _wanted(path: str, codes: Sequence[str], config: Configured, isolated: bool) -> RuleSet:
    full = os.path.abspath(path)
    selection = Selection(config.resolver(isolated).for_directory(os.path.dirname(full)))
    rules = selection.rules_for(full)
    if not codes:
        return rules
    wanted = tuple(find(selection.known, code, "--rule") for code in codes)
    options = {rule.code: {option.name: option.default for option in rule.options} for rule in wanted}
    return replace(rules, rules=wanted, options={**options, **rules.options})


def _print(explained: Sequence[Explained]) -> None:
    colour, columns = on_terminal("auto")
    lines: list[Line] = []
    for one in explained:
        lines += [[]] if lines else []
        lines += _paragraph(one, columns)
    paint(lines, sys.stdout, colour)


def _paragraph(one: Explained, columns: int | None) -> Iterator[Line]:
    about = f" `{one.subject}`" if one.subject else ""
    where = f":{place_in(one.cell, one.row, one.column)} "
    head: Line = [(printable(one.filename), "path"), (where, "faint"), (one.code, "code")]
    yield [*head, (f" {one.name}:", ""), *quoted(printable(about)), (f" {one.outcome}", "strong")]
    if one.message and one.outcome != SILENT:
        yield from hanging([("  ", "")], one.message, columns)
    for fact in one.seen:
        lead: Line = [(f"  {fact.topic:<9} ", "label")]
        yield from hanging(lead, f"{fact.clause}{line_of(fact, one)}", columns)
    for because in one.answers:
        answer = because.answer
        said = f"{answer.clause}{line_of(because, one)}"
        lead = [(f"  {answer.question.value:<9} ", "label"), (f"{sign_of(answer):<5} ", "")]
        yield from hanging(lead, said, columns)

"""What `gpulint rule`, `gpulint rules` and `gpulint explain` print."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from gpulint.cli._dispatch import while_read
from gpulint.cli._errors import Failed, as_error
from gpulint.cli._options import Configured, on_terminal, print_json
from gpulint.config import nearest_rule
from gpulint.lint.documentation import Page, example_problems, page
from gpulint.lint.explaining import SIGNS, SILENT, Explained, explain_text, line_of, notebook_of
from gpulint.lint.selection import Selection, load_rule_file
from gpulint.lint.trees import SourceError
from gpulint.reports import place_in
from gpulint.reports.document import Table
from gpulint.reports.layout import Line, hanging, paint, printable, quoted
from gpulint.reports.markdown import table
from gpulint.rule import Rule, RuleSet
from gpulint.source.files import FileError, decode, read_bytes
from gpulint.source.notebooks import is_notebook

_FORM = "FILE[:LINE]"
_LOCATION = re.compile(r"(?P<path>.+?)(?::cell (?P<cell>\d+))?(?::(?P<row>\d+)(?::(?P<column>\d+))?)?")
_LEAST = 40  # columns for what a rule finds, beside its name


def print_pages(code: str | None, output_format: str) -> int:
    """Print one page, or all of them where no code is given; the exit status."""
    selection = _selection(Configured(), False)
    rules = selection.known if code is None else (find(selection.known, code, "CODE"),)
    pages = [page(rule) for rule in rules]
    if output_format == "json":
        described = [_described(item, selection) for item in pages]
        print_json(described if code is None else described[0])
    elif output_format == "text" and sys.stdout.isatty():
        _render("\n\n---\n\n".join(item.markdown() for item in pages))
    else:
        click.echo("\n".join(item.markdown() for item in pages), nl=False)
    return 0


def print_table(output_format: str, config: Configured, isolated: bool) -> int:
    """Print the rules that the configuration here knows; the exit status."""
    selection = _selection(config, isolated)
    enabled = selection.codes_for(os.path.join(os.getcwd(), "x.py"))
    pages = [page(rule) for rule in selection.known]
    if output_format == "json":
        print_json([_described(item, selection) for item in pages])
    elif output_format == "markdown":
        head = ("Code", "Name", "Severity", "On", "What it finds")
        rows = [
            (one.rule.code, one.rule.name, one.rule.severity.value, _on(one.rule, enabled), one.summary)
            for one in pages
        ]
        click.echo("\n".join(table(Table(head, rows))), nl=False)
    else:
        _columns(pages, enabled)
    return 0


def test_file(path: str) -> int:
    """Run the examples of the rules in a file, say what is wrong; 1 where something is. Raises `ConfigError`."""
    known = _selection(Configured(), False).known
    tested = load_rule_file(path, "--test")
    codes = {rule.code for rule in tested}
    others = tuple(rule for rule in known if rule.default and rule.code not in codes)
    rules = RuleSet(
        (*others, *tested), {rule.code: {o.name: o.default for o in rule.options} for rule in known}
    )
    failed = False
    for rule in tested:
        problems = example_problems(rule, rules)
        failed |= bool(problems)
        click.echo(f"{rule.code} {rule.name}: {'ok' if not problems else 'wrong'}")
        for problem in problems:
            click.echo(textwrap.indent(problem, "  "))
    return int(failed)


def _selection(config: Configured, isolated: bool) -> Selection:
    return Selection(config.resolver(isolated).for_directory(os.getcwd()))


def find(rules: Sequence[type[Rule]], code: str, place: str) -> type[Rule]:
    """The rule of this code or name. Raises click.BadParameter, of what stands at `place`."""
    wanted = code.casefold().replace("_", "-")
    for rule in rules:
        if wanted in (rule.code.casefold(), rule.name):
            return rule
    near = nearest_rule(code, {rule.code: rule.name for rule in rules})
    raise click.BadParameter(f'there is no rule "{code}"{near}', param_hint=place)


def _described(item: Page, selection: Selection) -> dict[str, Any]:
    enabled = selection.codes_for(os.path.join(os.getcwd(), "x.py"))
    return {
        "code": item.rule.code,
        "name": item.rule.name,
        "severity": item.rule.severity.value,
        "default": item.rule.default,
        "doubts": item.rule.doubts,
        "enabled": item.rule.code in enabled,
        "summary": item.summary,
        "options": [
            {
                "name": option.name,
                "default": option.default,
                "choices": list(option.choices),
                "help": option.help,
            }
            for option in item.rule.options
        ],
        "documentation": item.markdown(),
    }


def _on(rule: type[Rule], enabled: frozenset[str]) -> str:
    return "yes" if rule.code in enabled else "no"


def _columns(pages: list[Page], enabled: frozenset[str]) -> None:
    """A line for each rule in a pipe, for other programs; on a terminal as many as its summary takes, in a column of its own
    or, where there is no room for one, below."""
    wide = max((len(item.rule.name) for item in pages), default=4)
    columns = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else None
    narrow = columns is not None and columns - wide - 25 < _LEAST
    click.echo(
        f"{'code':8}{'name':{wide + 2}}{'severity':10}{'on':5}{'' if narrow else 'what it finds'}".rstrip()
    )
    for item in pages:
        rule = item.rule
        lead = f"{rule.code:8}{rule.name:{wide + 2}}{rule.severity.value:10}{_on(rule, enabled):5}"
        if columns is None:
            click.echo(lead + item.summary)
        elif narrow:
            click.echo(lead.rstrip())
            click.echo(
                textwrap.fill(_short(item), columns, initial_indent=" " * 8, subsequent_indent=" " * 8)
            )
        else:
            first, *more = textwrap.wrap(_short(item), columns - len(lead))
            click.echo("\n".join([lead + first, *(" " * len(lead) + line for line in more)]))


def _short(item: Page) -> str:
    """A summary without its examples and further kinds."""
    return re.split(r"[:;] ", item.summary)[0].removeprefix("Finds ").rstrip(".")


def _render(text: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))


# -- gpulint explain ------------------------------------------------------------------------------------------


def explain(
    location: str, codes: Sequence[str], config: Configured, isolated: bool, output_format: str
) -> int:
    """Print the claims considered at FILE[:LINE]; the exit status."""
    place = _place(location)
    path = place.path
    rules = _wanted(path, codes, config, isolated)
    with as_error(Failed, SourceError, FileError, of=f"{path} cannot be checked"):
        text = decode(path, read_bytes(path)).text
        explained = _at(place, explain_text(text, path, rules), text)
    with while_read():
        if output_format == "json":
            print_json([one.to_json() for one in explained])
        elif explained:
            _print(explained)
        else:
            click.echo(_nothing(location))
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
    for because in one.answers:
        answer = because.answer
        said = f"{answer.clause}{line_of(because, one)}"
        lead: Line = [(f"  {answer.question.value:<9} ", "label"), (f"{SIGNS[answer.verdict]:<5} ", "")]
        yield from hanging(lead, said, columns)


def _nothing(location: str) -> str:
    return f"{location}: no rule in force considered anything here."

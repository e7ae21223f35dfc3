"""What `gpulint rule` and `gpulint rules` print."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

import click

from gpulint.cli._options import Configured, print_json
from gpulint.config import nearest_rule
from gpulint.lint.documentation import Page, example_problems, page
from gpulint.lint.selection import Selection, load_rule_file
from gpulint.reports.document import Table
from gpulint.reports.markdown import table
from gpulint.rule import Rule, RuleSet

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

"""`gpulint rules`: the rules in a table; and what `gpulint rule` and `gpulint explain` ask of rules, too."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from gpulint.cli._options import Configured, option, print_json
from gpulint.config import nearest_rule
from gpulint.lint.documentation import Page, page
from gpulint.lint.selection import Selection
from gpulint.reports.document import Table
from gpulint.reports.markdown import table
from gpulint.rule import Rule

_LEAST = 40  # columns for what a rule finds, beside its name


@click.command()
@option.output_format("text", "json", "markdown")
@option.configuration
def command(output_format: str, config: Configured, isolated: bool) -> None:
    """List the rules, those of the project's own files among them, and which are on."""
    selection = selection_here(config, isolated)
    enabled = enabled_here(selection)
    pages = [page(rule) for rule in selection.known]
    if output_format == "json":
        print_json([described(item, selection) for item in pages])
    elif output_format == "markdown":
        head = ("Code", "Name", "Severity", "On", "What it finds")
        rows = [(*_figures(item.rule, enabled), item.summary) for item in pages]
        click.echo("\n".join(table(Table(head, rows))), nl=False)
    else:
        _columns(pages, enabled)


def _figures(rule: type[Rule], enabled: frozenset[str]) -> tuple[str, str, str, str]:
    return rule.code, rule.name, rule.severity.value, "yes" if rule.code in enabled else "no"


def _columns(pages: list[Page], enabled: frozenset[str]) -> None:
    """A line for each rule in a pipe, for other programs; on a terminal as many as its summary takes, in a column of its own
    or, where there is no room for one, below."""
    wide = max((len(item.rule.name) for item in pages), default=4)
    form = f"{{:8}}{{:{wide + 2}}}{{:10}}{{:5}}"
    columns = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else None
    narrow = columns is not None and columns - wide - 25 < _LEAST
    found = "" if narrow else "what it finds"
    click.echo((form.format("code", "name", "severity", "on") + found).rstrip())
    for item in pages:
        lead = form.format(*_figures(item.rule, enabled))
        short = re.split(r"[:;] ", item.summary)[0].removeprefix("Finds ").rstrip(".")
        if columns is None:
            click.echo(lead + item.summary)
        elif narrow:
            click.echo(lead.rstrip())
            click.echo(textwrap.fill(short, columns, initial_indent=" " * 8, subsequent_indent=" " * 8))
        else:
            first, *more = textwrap.wrap(short, columns - len(lead))
            click.echo("\n".join([lead + first, *(" " * len(lead) + line for line in more)]))


# -- what is asked of rules ---------------------------------------------------------------------------------------


def selection_here(config: Configured, isolated: bool) -> Selection:
    """What the configuration in force here selects. Raises `ConfigError`."""
    return Selection(config.resolver(isolated).for_directory(os.getcwd()))


def enabled_here(selection: Selection) -> frozenset[str]:
    return selection.codes_for(os.path.join(os.getcwd(), "x.py"))


def find(rules: Sequence[type[Rule]], code: str, place: str) -> type[Rule]:
    """The rule of this code or name. Raises click.BadParameter, of what stands at `place`."""
    wanted = code.casefold().replace("_", "-")
    for rule in rules:
        if wanted in (rule.code.casefold(), rule.name):
            return rule
    near = nearest_rule(code, {rule.code: rule.name for rule in rules})
    raise click.BadParameter(f'there is no rule "{code}"{near}', param_hint=place)


def described(item: Page, selection: Selection) -> dict[str, Any]:
    """A rule as JSON."""
    rule = item.rule
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "default": rule.default,
        "doubts": rule.doubts,
        "enabled": rule.code in enabled_here(selection),
        "summary": item.summary,
        "options": [asdict(option) for option in rule.options],
        "documentation": item.markdown(),
    }

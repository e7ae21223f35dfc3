"""What `gpulint explain` prints."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace

import click

from gpulint.answers import Verdict
from gpulint.config import ConfigResolver, did_you_mean
from gpulint.explaining import SILENT, Explained, explain_text
from gpulint.files import FileError, decode, read_bytes
from gpulint.rule import Rule, RuleSet
from gpulint.selection import Selection
from gpulint.trees import SourceError

_SIGNS = {Verdict.PROVEN: "yes", Verdict.REFUTED: "no", Verdict.OPEN: "open"}


class _Unexplained(click.ClickException):
    exit_code = 2


def explain(location: str, codes: Sequence[str], file: str | None, isolated: bool, output_format: str) -> int:
    """Print the claims considered at FILE[:LINE]; the exit status."""
    path, row = _place(location)
    rules = _rules(path, codes, file, isolated)
    try:
        source = decode(path, read_bytes(path))
        explained = explain_text(source.text, path, rules, row=row)
    except (SourceError, FileError) as error:
        raise _Unexplained(f"{path} cannot be checked: {error}") from None
    if output_format == "json":
        click.echo(json.dumps([one.to_json() for one in explained], indent=2))
    else:
        click.echo("\n\n".join(map(_paragraph, explained)) if explained else _nothing(path, row, rules))
    return 0 if explained else 1


def _place(location: str) -> tuple[str, int | None]:
    path, colon, last = location.rpartition(":")
    if not os.path.exists(location) and colon and last.isdigit():
        path, row = path, int(last)
    else:
        path, row = location, None
    if not os.path.isfile(path):
        raise click.BadParameter(f"there is no file {path}", param_hint="FILE[:LINE]")
    if path.endswith(".ipynb"):
        raise click.BadParameter(
            "notebooks cannot be explained; export the cell to a .py file", param_hint="FILE[:LINE]"
        )
    if row == 0:
        raise click.BadParameter("lines count from 1", param_hint="FILE[:LINE]")
    return path, row


def _rules(path: str, codes: Sequence[str], file: str | None, isolated: bool) -> RuleSet:
    full = os.path.abspath(path)
    selection = Selection(ConfigResolver(file, isolated).for_directory(os.path.dirname(full)))
    rules = selection.rules_for(full)
    if not codes:
        return rules
    wanted = tuple(_named(selection.known, code) for code in codes)
    options = {rule.code: {option.name: option.default for option in rule.options} for rule in wanted}
    return replace(rules, rules=wanted, options={**options, **rules.options})


def _named(known: Sequence[type[Rule]], code: str) -> type[Rule]:
    for rule in known:
        if code.casefold() in (rule.code.casefold(), rule.name):
            return rule
    names = [name for rule in known for name in (rule.code, rule.name)]
    raise click.BadParameter(f'there is no rule "{code}"{did_you_mean(code, names)}', param_hint="--rule")


def _paragraph(one: Explained) -> str:
    about = f" `{one.subject}`" if one.subject else ""
    lines = [f"{one.filename}:{one.row}:{one.column} {one.code} {one.name}:{about} {one.outcome}"]
    if one.message and one.outcome != SILENT:
        lines.append(f"  {one.message}")
    for answer, row in one.answers:
        where = f" (line {row})" if row != one.row else ""
        lines.append(f"  {answer.question.value:<9} {_SIGNS[answer.verdict]:<5} {answer.clause}{where}")
    if not one.answers:
        lines.append("  this rule tells what it found, and not yet what it asked")
    return "\n".join(lines)


def _nothing(path: str, row: int | None, rules: RuleSet) -> str:
    where = f"{path}:{row}" if row is not None else path
    silent = sum(rule.considers is Rule.considers for rule in rules.rules)
    return (
        f"{where}: no rule in force considered anything here. "
        f"{silent} of {len(rules.rules)} rules do not yet say what they reject; they have nothing to report here."
    )

"""`gpulint rule`: a rule's documentation, and the examples of a project's own rules."""

from __future__ import annotations

import sys
import textwrap

import click
from click.shell_completion import CompletionItem
from gpulint.rules import all_rules

from gpulint.cli._options import Configured, option, print_json
from gpulint.cli.commands.rules import described, find, selection_here
from gpulint.lint.documentation import example_problems, page
from gpulint.lint.selection import load_rule_file
from gpulint.rule import Rule, RuleSet


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    given = incomplete.upper()
    return [CompletionItem(rule.code, help=rule.name) for rule in all_rules() if rule.code.startswith(given)]


@click.command()
@click.argument("code", required=False, shell_complete=_complete)
@option.flag("--all", "everything", "Every rule.")
@option(
    "--test FILE",
    "file",
    "Put the rules in FILE to the test by their own examples.",
    type=click.Path(exists=True),
)
@option.output_format(
    *("text", "markdown", "json"), said="text (Markdown where this is no terminal), markdown or json."
)
def command(code: str | None, everything: bool, file: str | None, output_format: str) -> int:
    """Print the documentation of the rule CODE (a code such as GPU101, or a name such as held-graph)."""
    if sum((code is not None, everything, file is not None)) != 1:
        raise click.UsageError("Give a rule's code, --all, or --test FILE.")
    selection = selection_here(Configured(), False)
    if file is not None:
        return _tested(file, selection.known)
    rules = selection.known if code is None else (find(selection.known, code, "CODE"),)
    pages = [page(rule) for rule in rules]
    if output_format == "json":
        listed = [described(item, selection) for item in pages]
        print_json(listed if code is None else listed[0])
    elif output_format == "text" and sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown("\n\n---\n\n".join(item.markdown() for item in pages)))
    else:
        click.echo("\n".join(item.markdown() for item in pages), nl=False)
    return 0


def _tested(path: str, known: tuple[type[Rule], ...]) -> int:
    """Run the examples of the rules in a file, say what is wrong; 1 where something is. Raises `ConfigError`."""
    tested = load_rule_file(path, "--test")
    codes = {rule.code for rule in tested}
    others = tuple(rule for rule in known if rule.default and rule.code not in codes)
    options = {rule.code: {o.name: o.default for o in rule.options} for rule in known}
    rules = RuleSet((*others, *tested), options)
    failed = False
    for rule in tested:
        problems = example_problems(rule, rules)
        failed |= bool(problems)
        click.echo(f"{rule.code} {rule.name}: {'ok' if not problems else 'wrong'}")
        for problem in problems:
            click.echo(textwrap.indent(problem, "  "))
    return int(failed)

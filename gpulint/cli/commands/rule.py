"""`gpulint rule`: a rule's documentation, and the examples of a project's own rules."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from gpulint.cli._options import output_format


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gpulint.rules import all_rules

    return [
        CompletionItem(rule.code, help=rule.name)
        for rule in all_rules()
        if rule.code.startswith(incomplete.upper())
    ]


@click.command()
@click.argument("code", required=False, shell_complete=_complete)
@click.option("--all", "everything", is_flag=True, help="Every rule.")
@click.option(
    "--test",
    "file",
    metavar="FILE",
    type=click.Path(exists=True),
    help="Put the rules in FILE to the test by their own examples.",
)
@output_format(
    "text",
    "markdown",
    "json",
    help="text (Markdown where this is no terminal), markdown or json.",
)
def command(code: str | None, everything: bool, file: str | None, output_format: str) -> int:
    """Print the documentation of the rule CODE (a code such as GPU101, or a name such as held-graph)."""
    from gpulint.cli._rules import print_pages, test_file

    given = sum((code is not None, everything, file is not None))
    if given != 1:
        raise click.UsageError("Give a rule's code, --all, or --test FILE.")
    if file is not None:
        return test_file(file)
    return print_pages(code, output_format)

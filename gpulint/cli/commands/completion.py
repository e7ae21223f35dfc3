"""`gpulint completion`: the script that teaches a shell to complete gpulint's options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from gpulint.cli._dispatch import cli

_WHERE = {
    "bash": 'eval "$(gpulint completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(gpulint completion zsh)"   in ~/.zshrc',
    "fish": "gpulint completion fish > ~/.config/fish/completions/gpulint.fish",
}


@click.command(epilog="\b\n" + "\n".join(f"{shell + ':':6}{line}" for shell, line in _WHERE.items()))
@click.argument("shell", type=click.Choice(list(_WHERE)))
def command(shell: str) -> None:
    """Print the completion script for a shell."""
    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"click has no completion for {shell}.")
    click.echo(completer(cli, {}, "gpulint", "_GPULINT_COMPLETE").source())

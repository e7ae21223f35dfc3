"""Finds the command that is meant, runs it, and turns what goes wrong into one line and an exit status."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final

import click
from click.shell_completion import CompletionItem

from gpulint.cli._errors import say
from gpulint.version import __version__

DEFAULT = "check"
# what there is, as --help lists it without importing any of it
GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Reading code": {
        "check": "Find mistakes in files, and fix them: the default.",
        "explain": "Say why a line is reported, or is not.",
        "rules": "List the rules.",
        "rule": "Print a rule's documentation.",
        "config": "Print the settings in force, or their schema.",
        "codemod": "Put the memory kit into training scripts.",
        "server": "Run the language server for editors.",
    },
    "Running it": {
        "verify": "Run some steps of a script and judge every finding.",
        "forecast": "Will it fit? Say what a script would take on a GPU, without one.",
        "run": "Run a program, record its memory, explain its OOM.",
        "snapshot": "Read memory snapshots of PyTorch: peak by line, growth, what if.",
        "oom": "Explain the out-of-memory messages in a log.",
        "gpu": "Show cards, and the processes on them.",
        "experiment": "Try out what is said about the allocator.",
    },
    "Setting up": {
        "init": "Write a configuration, a hook and a workflow.",
        "clean": "Take away what earlier runs found.",
        "completion": "Print the completion script for a shell.",
    },
}
COMMANDS: Final = {name: text for group in GROUPS.values() for name, text in group.items()}
_WORD: Final = re.compile(r"[A-Za-z][\w-]*")
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """The files of this package as commands, imported when used. Anything else is a path for `check`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"gpulint.cli.commands.{cmd_name}").command
        command.short_help = COMMANDS[cmd_name]
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"-h", "--help", "-V", "--version"}
        if args[:1] == ["help"] and not os.path.exists("help"):
            args = [*args[1:2], "--help"]
        if args and args[0] not in own and args[0] not in self.list_commands(ctx):
            self._refuse_misspelt(ctx, args[0])
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def _refuse_misspelt(self, ctx: click.Context, word: str) -> None:
        """A first word that is no path may have been meant for a command."""
        if not _WORD.fullmatch(word) or os.path.lexists(word):
            return
        from gpulint.config import did_you_mean

        near = did_you_mean(word, [*self.list_commands(ctx), "--version"])
        raise click.UsageError(
            f'there is neither a command nor a file called "{word}"{near or "; gpulint --help lists the commands"}'
        )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands, and what may follow when the command is left out: options of `check`, and paths."""
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            default = self.get_command(ctx, DEFAULT)
            return found + (default.shell_complete(ctx, incomplete) if default else [])
        # A shell told to complete file names forgets all other candidates, so commands come first.
        return found or [CompletionItem(incomplete, type="file")]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in group.items()])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("gpulint", "[PATHS]... [OPTIONS]  or  gpulint COMMAND [ARGS]...")


@click.command(cls=Commands, context_settings=SETTINGS, no_args_is_help=True)
@click.version_option(__version__, "-V", "--version", message="gpulint %(version)s")
def cli() -> None:
    """Find, fix and verify GPU-memory mistakes in PyTorch training code."""


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit status."""
    _open_closed_streams()
    _never_fail_on_characters()
    return _flushed(_run(arguments))


def _run(arguments: Sequence[str]) -> int:
    try:
        returned = cli.main(list(arguments), prog_name="gpulint", standalone_mode=False)
        return returned if isinstance(returned, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        from gpulint.cli._errors import help_text, sentence

        shown = help_text(error)
        if shown:
            print(shown, file=sys.stderr)
        else:
            say(sentence(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say("interrupted")
        return 130
    except BrokenPipeError:  # as other tools do, without a word
        drop_stdout()
        return 141  # 128 + SIGPIPE
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return _disk_full(error)
        if _has_directory():
            return _failed(error)
        say("the working directory is gone: change to another one, and run gpulint again")
        return 2
    except Exception as error:
        return _failed(error)


def _has_directory() -> bool:
    """Whether the working directory is still there."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _failed(error: Exception) -> int:
    from gpulint.config import ConfigError

    if isinstance(error, ConfigError):
        say(str(error))
        return 2
    if os.environ.get("GPULINT_TRACEBACK") or "-v" in sys.argv or "--verbose" in sys.argv:
        import traceback

        traceback.print_exception(error)
    from gpulint.lint.results import REPORT_URL

    what = f"{type(error).__name__}: {error}"
    say(f"internal error: {what}; please report it at {REPORT_URL} (-v shows the traceback)")
    return 2


def _open_closed_streams() -> None:
    """Started with a closed stream (`>&-`) Python has None in its place, which nothing can be written to."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _never_fail_on_characters() -> None:
    """A file name or a message that the terminal's encoding lacks is escaped, not a crash."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _flushed(status: int) -> int:
    """The status, or 2 where what was to be said could not be (a full disk)."""
    try:
        sys.stdout.flush()
    except (BrokenPipeError, ValueError):
        drop_stdout()
    except OSError as error:
        return _disk_full(error)
    return status


def _disk_full(error: OSError) -> int:
    drop_stdout()
    say(f"the output cannot be written: {error.strerror or error}")
    return 2


@contextlib.contextmanager
def while_read() -> Iterator[None]:
    """Writing to standard output that ends quietly when nobody reads any more, so that the command goes on to its status."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()


def drop_stdout() -> None:
    """Point standard output to nowhere, or the interpreter would complain when it flushes it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

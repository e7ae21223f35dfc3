"""Functions that something outside only starts: command lines, processes, threads, a package's console scripts.

Whoever starts one adds nothing around it: grad is on when it begins, as for a call in the file's own body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gpulint.analysis.code import ir
from gpulint.analysis.file.gradmode import decorator_name

if TYPE_CHECKING:
    from gpulint.analysis.torch.names import Names

# Who only calls the functions that he is given, by themselves or in a table of them.
_RUNNERS: Final = frozenset(
    {
        "fire.Fire", "fire.core.Fire", "typer.run", "absl.app.run", "tensorflow.app.run", "tensorflow.compat.v1.app.run",
        "tyro.cli", "tyro.extras.subcommand_cli_from_dict", "jsonargparse.CLI", "jsonargparse.auto_cli", "defopt.run",
        "plac.call", "clize.run", "argh.dispatch_command", "argh.dispatch_commands", "cyclopts.run", "begin.start",
        "threading.Thread", "multiprocessing.Process", "torch.multiprocessing.Process", "torch.multiprocessing.spawn",
        "torch.multiprocessing.start_processes", "torch.multiprocessing.spawn.spawn", "accelerate.notebook_launcher",
        "accelerate.launchers.notebook_launcher", "accelerate.debug_launcher",
        "torch.distributed.launcher.api.elastic_launch", "torch_xla.distributed.xla_multiprocessing.spawn",
        "gradio.Interface", "gradio.ChatInterface", "gradio.Blocks",
    }
)  # fmt: skip
# Methods of parsers and groups of commands, whatever these are called: `parser.set_defaults(func=main)`.
_REGISTERING: Final = frozenset({"set_defaults", "add_command", "add_typer", "register_command"})
# Decorators of command lines, by their last names; those that only their library tells are beside it.
_COMMANDS: Final = frozenset({"command", "automain", "hydra_main", "hydra_runner"})
_COMMANDS_OF: Final = {
    "hydra": {"main"}, "click": {"group"}, "typer": {"callback"}, "sacred": {"main", "command"},
    "draccus": {"wrap"}, "pyrallis": {"wrap"}, "begin": {"start"}, "cyclopts": {"default"},
}  # fmt: skip
# What a function calls that starts another, by last names.
STARTING: Final = (
    frozenset(name.rpartition(".")[2] for name in _RUNNERS)
    | _REGISTERING
    | _COMMANDS.union(*_COMMANDS_OF.values())
)


def started_by(call: ir.Call, names: Names) -> tuple[ir.Expr, ...]:
    """The functions that a call hands to somebody who only starts them, as they stand there: `main` of `Fire(main)`, of
    `Fire({"train": main})` and of `Thread(target=partial(main, 3))`."""
    if call.method in _REGISTERING:
        known = isinstance(call.func, ir.Attr)
    else:
        known = names.qualify(call.func.path or "") in _RUNNERS
    if known:
        return tuple(_functions((*call.args, *(value for _, value in call.keywords))))
    decorator = call.func
    if isinstance(decorator, ir.Call) and is_command(decorator, names):
        return tuple(_functions(call.args[:1]))  # `click.command()(main)`
    return ()


def is_command(decorator: ir.Expr, names: Names) -> bool:
    """Whether a decorator makes a function a command of a command line."""
    path, last = decorator_name(decorator)
    if last in _COMMANDS:
        return True
    root = (names.qualify(path) if path is not None else None) or ""
    return last in _COMMANDS_OF.get(root.partition(".")[0], ())


def _functions(given: tuple[ir.Expr, ...]) -> Iterator[ir.Expr]:
    for expr in given:
        if isinstance(expr, (ir.Name, ir.Attr)):
            yield expr
        elif isinstance(expr, (ir.Seq, ir.DictDisplay)):
            yield from _functions(tuple(expr.children()))
        elif isinstance(expr, ir.Call) and expr.method == "partial":
            yield from _functions(expr.args[:1])

"""Functions that something outside only starts: command lines, processes, threads, a package's console scripts.

Whoever starts one adds nothing around it: grad is on when it begins, as for a call in the file's own body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from gpulint.analysis.code import ir
from gpulint.analysis.file.gradmode import decorator_name

if TYPE_CHECKING:
    from gpulint.analysis.file.surroundings import Surroundings
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

PROJECT_FILES: Final = ("pyproject.toml", "setup.cfg", "setup.py")
_TABLES: Final = (("project", "scripts"), ("project", "gui-scripts"), ("tool", "poetry", "scripts"))
# In setup.py and setup.cfg: the list below `console_scripts`, as a Python list or as the lines of an INI file.
_LISTS: Final = re.compile(
    r"\b(?:console|gui)_scripts\b[\"']?\s*(?:[:=]\s*[\[(](?P<python>[^\])]*)|\]?\s*=?[ \t]*(?P<ini>(?:\n[ \t]*[\w.-]+[ \t]*=[^\n]*)+))"
)
_TARGET: Final = re.compile(r"=\s*[\"']?([A-Za-z_][\w.]*)\s*:\s*([A-Za-z_][\w.]*)")


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


def console_scripts(project: Surroundings[Any] | None, filename: str) -> frozenset[str]:
    """The functions of a file that its project's metadata installs as commands, by their names in the file."""
    texts = project.beside(filename, PROJECT_FILES) if project is not None else ()
    parts = PurePath(filename).with_suffix("").parts
    module = parts[:-1] if parts[-1] == "__init__" else parts
    return frozenset(
        function
        for text in texts
        if "scripts" in text
        for dotted, function in _scripts(text)
        if module[-len(wanted := tuple(dotted.split("."))) :] == wanted
    )


@lru_cache(maxsize=64)
def _scripts(text: str) -> frozenset[tuple[str, str]]:
    """The commands that a project file names, as (module, function). A file that is no TOML is setup.py or setup.cfg."""
    from gpulint.config import parse_toml

    try:
        data = parse_toml(text)
    except ValueError:
        found = (match["python"] or match["ini"] or "" for match in _LISTS.finditer(text))
        return frozenset(pair for part in found for pair in _TARGET.findall(part))
    targets: list[str] = []
    for path in _TABLES:
        table: object = data
        for key in path:
            table = table.get(key) if isinstance(table, dict) else None
        for target in table.values() if isinstance(table, dict) else ():
            # Poetry also writes `{ reference = "package.module:main", type = "console" }`.
            written = target.get("reference", target.get("callable")) if isinstance(target, dict) else target
            targets += [written] if isinstance(written, str) else []
    return frozenset(pair for target in targets for pair in _TARGET.findall(f"={target}"))

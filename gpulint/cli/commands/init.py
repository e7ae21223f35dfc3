"""`gpulint init`: a configuration, a pre-commit hook and a workflow, where there are none."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import click

from gpulint.atomic import target_of, write_atomic
from gpulint.cli._errors import say
from gpulint.cli._options import option
from gpulint.config import load_config, parse_toml

_REPOSITORY = "https://github.com/gpulint/gpulint"


def _ref() -> str:
    """What names this gpulint in its repository: the release or the commit that was installed. Of a folder or a file nobody
    knows what it is, so `main`."""
    from importlib.metadata import Distribution, PackageNotFoundError

    try:
        installed = Distribution.from_name("gpulint")
        told = installed.read_text("direct_url.json")
        if told is None:  # from a package index
            return f"v{installed.version}"
    except PackageNotFoundError:
        told = "{}"
    origin = json.loads(told)
    commit = origin.get("vcs_info", {}).get("commit_id")
    ours = origin.get("url", "").removesuffix(".git") == _REPOSITORY
    return commit if commit and ours else "main  # better a commit: this follows whatever comes"


def _files() -> Iterator[tuple[str, str, str]]:
    """Where each file is written, its text, and the word without which one that is there already lacks the text, "" where it
    lacks nothing."""
    ref = _ref()
    workflow = os.path.join(".github", "workflows", "gpulint.yml")
    for path, asset, mark in (
        ("gpulint.toml", "configuration.toml", ""),
        (".pre-commit-config.yaml", "hook.yaml", "gpulint"),
        (workflow, "workflow.yaml", ""),
    ):
        text = (files("gpulint.cli") / "assets" / asset).read_text(encoding="utf-8")
        yield path, text.replace("{ref}", ref), mark


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False), default=".")
@option.flag("--diff", "Print what would be written; write nothing.")
def command(directory: str, diff: bool) -> int:
    """Write gpulint.toml, .pre-commit-config.yaml and .github/workflows/gpulint.yml into DIRECTORY.

    What is there already is left alone, and what to add to it by hand is printed; a configuration of ruff gets
    gpulint's codes for its `external`. Exit status: 0; 2 where a file
    could not be written.
    """
    failed = False
    for name, text, mark in _files():
        path = os.path.normpath(os.path.join(directory, name))
        present = _present(directory, name)
        if present is not None:
            lacks = mark and not _has(present, mark)
            to_add = f"; add to it:\n{textwrap.indent(text, '    ')}".rstrip() if lacks else ""
            click.echo(f"{os.path.normpath(present)}: left as it is{to_add}")
        elif diff:
            click.echo(f"{path}: would be written:\n{textwrap.indent(text, '    ')}")
        else:
            failed |= not _written(path, text)
    failed |= not _for_ruff(directory, diff)
    if not diff and not failed:
        click.echo("Next: gpulint .")
    return 2 if failed else 0


def _for_ruff(directory: str, only_shown: bool) -> bool:
    """See that ruff's configuration has gpulint's codes: ruff takes codes in `noqa` that it does not know for wrong and unused.

    They are written where a line more says so, else what to write is said. False where a file could not be written.
    """
    for name, prefix in ((".ruff.toml", ""), ("ruff.toml", ""), ("pyproject.toml", "tool.ruff.")):
        path = os.path.join(directory, name)
        try:
            with open(path, encoding="utf-8", newline="") as file:
                text = file.read()
            settings: Any = parse_toml(text.removeprefix("\ufeff").replace("\r\n", "\n"))
        except (OSError, ValueError):
            continue
        for part in filter(None, prefix.split(".")):
            settings = settings.get(part) if isinstance(settings, dict) else None
        if settings is None:
            continue
        lint = settings.get("lint", {}) if isinstance(settings, dict) else {}
        known = lint.get("external", []) if isinstance(lint, dict) else []
        if "GPU" in known:
            return True
        line = f"external = {json.dumps([*known, 'GPU'])}"
        made = _with_line(text, f"[{prefix}lint]", line)
        what = textwrap.indent(f"[{prefix}lint]\n{line}", "    ")
        if made is None:
            click.echo(
                f"{name}: ruff does not know gpulint's codes in `# noqa: GPU101`; write in it:\n{what}"
            )
        elif only_shown:
            click.echo(f"{name}: would get, for `# noqa: GPU101`:\n{what}")
        else:
            return _written(path, made)
        return True
    return True


def _with_line(text: str, header: str, line: str) -> str | None:
    """A TOML file with one line more, right below a table's header, or with the table at its end. None where it is no TOML then."""
    end = "\r\n" if "\r\n" in text else "\n"
    found = re.search(rf"^[ \t]*{re.escape(header)}[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z)", text, re.MULTILINE)
    if found is None:
        lead = "" if not text.strip() else end if text.endswith("\n") else 2 * end
        made = f"{text}{lead}{header}{end}{line}{end}"
    else:
        lead = "" if found[0].endswith("\n") else end
        made = f"{text[: found.end()]}{lead}{line}{end}{text[found.end() :]}"
    try:
        parse_toml(made.removeprefix("\ufeff").replace("\r\n", "\n"))
    except ValueError:  # it is there already, or the table is written in another way
        return None
    return made


def _present(directory: str, name: str) -> str | None:
    """The file that stands for one already: itself, or a pyproject.toml with a table of ours."""
    path, pyproject = os.path.join(directory, name), os.path.join(directory, "pyproject.toml")
    if os.path.lexists(path):
        return path
    ours = name == "gpulint.toml" and os.path.isfile(pyproject) and load_config(pyproject) is not None
    return pyproject if ours else None


def _has(path: str, word: str) -> bool:
    """Whether a file has it, or cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return word in file.read()
    except (OSError, ValueError):
        return True


def _written(path: str, text: str) -> bool:
    try:
        os.makedirs(os.path.dirname(target_of(path)), exist_ok=True)
        write_atomic(path, text.encode())
    except OSError as error:
        say(f"{path}: cannot be written: {error.strerror or error}")
        return False
    click.echo(f"{os.path.normpath(path)}: written")
    return True

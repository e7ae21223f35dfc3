"""A codemod over files: found as the linter finds them, written atomically."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from gpulint.atomic import write_atomic
from gpulint.codemods import left_out, transform
from gpulint.config import ConfigResolver
from gpulint.source.discovery import discover
from gpulint.source.edits import unified_diff
from gpulint.source.files import FileError, read_source


@dataclass(slots=True)
class Outcome:
    """Paths that changed (or would), their diffs where those were asked for, what was not done, and what went wrong."""

    seen: int = 0
    changed: list[str] = field(default_factory=list)
    diffs: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)


def change_files(name: str, paths: Sequence[str], diff: bool) -> Outcome:
    """Apply codemod `name` to the Python files behind `paths`; with `diff` nothing is written."""
    outcome = Outcome()
    found = discover(paths, ConfigResolver())
    told = (problem for problem in found.problems if problem.named or not problem.harmless)
    outcome.problems += [(problem.path, problem.error.message) for problem in told]
    for target in found.targets:
        if target.path.endswith(".py"):
            outcome.seen += 1
            try:
                _change(name, target.path, diff, outcome)
            except FileError as error:
                outcome.problems.append((target.path, error.message))
            except OSError as error:
                outcome.problems.append((target.path, error.strerror or str(error)))
    return outcome


def _change(name: str, path: str, diff: bool, outcome: Outcome) -> None:
    source = read_source(path)
    try:
        text = transform(name, source.text)
    except cst.ParserSyntaxError as error:
        outcome.problems.append((path, f"not valid Python, line {error.raw_line}: {error.message}"))
        return
    except RecursionError as error:
        outcome.problems.append((path, str(error)))
        return
    if text == source.text:
        if reason := left_out(name, text):
            outcome.left_out.append((path, reason))
        return
    outcome.changed.append(path)
    if diff:
        outcome.diffs.append(unified_diff(source.text, text, os.path.relpath(path)))
    else:
        write_atomic(path, source.encode(text))

"""Putting the memory kit into existing training scripts: `gpulint codemod NAME PATHS`.

Each codemod is a function from a module to changes of its nodes, as the rules' repairs have them: none the second time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import libcst as cst

from gpulint.atomic import write_atomic
from gpulint.codemods import loops
from gpulint.codemods.alloc_conf import alloc_conf
from gpulint.codemods.kit import KIT, kit_name
from gpulint.config import ConfigResolver
from gpulint.fix.fixing import render
from gpulint.rule import AddImport, Repair
from gpulint.source.discovery import discover
from gpulint.source.edits import rewritten, unified_diff
from gpulint.source.files import FileError, read_source
from gpulint.source.positions import Spans
from gpulint.source.syntax import flaw

_CODEMODS: Final = {
    "monitor": loops.monitor,
    "oom-guard": loops.oom_guard,
    "phase-cleanup": loops.phase_cleanup,
    "alloc-conf": alloc_conf,
}
NAMES: Final = tuple(_CODEMODS)
INSTALL: Final = (
    "functions of other files are not followed. "
    '`memory.Monitor.install("memory.jsonl", every=100)` before the training finds the steps by itself'
)
_ELSEWHERE: Final = f"not changed: it makes an optimizer, and the steps are not in this file; {INSTALL}"


def transform(name: str, text: str) -> str:
    """The text with codemod `name` applied; the same text where there is nothing to do.

    Raises ValueError for an unknown name, libcst.ParserSyntaxError where the text is not Python, RecursionError where it is
    nested so deeply that libcst's native parser would overflow the stack and take the process with it.
    """
    if name not in NAMES:
        raise ValueError(f"there is no codemod {name!r}; there are {', '.join(NAMES)}")
    wrong = flaw(text)
    if wrong is not None and wrong.too_deep:
        raise RecursionError(f"line {wrong.line}: {wrong.message}")
    module = cst.parse_module(text)
    changes = list(_CODEMODS[name](module))
    if not changes:
        return text
    called, imported = kit_name(module)
    if imported is None:
        changes.insert(0, AddImport(KIT, "memory", None if called == "memory" else called))
    fix = render(module, Spans(module, text), Repair("safe", "", tuple(changes)))
    return rewritten(text, fix.edits) if fix is not None else text


def left_out(name: str, text: str) -> str:
    """What codemod `name` has not done in a text that it left alone, and what to do instead; "" where nothing is missing."""
    return _ELSEWHERE if name == "monitor" and loops.steps_elsewhere(cst.parse_module(text)) else ""


# -- files: found as the linter finds them, written atomically ---------------------------------------------------


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
    for path in (target.path for target in found.targets if target.path.endswith(".py")):
        outcome.seen += 1
        try:
            _change(name, path, diff, outcome)
        except FileError as error:
            outcome.problems.append((path, error.message))
        except cst.ParserSyntaxError as error:
            outcome.problems.append((path, f"not valid Python, line {error.raw_line}: {error.message}"))
        except (OSError, RecursionError) as error:
            outcome.problems.append((path, getattr(error, "strerror", None) or str(error)))
    return outcome


def _change(name: str, path: str, diff: bool, outcome: Outcome) -> None:
    source = read_source(path)
    text = transform(name, source.text)
    if text == source.text:
        if reason := left_out(name, text):
            outcome.left_out.append((path, reason))
        return
    outcome.changed.append(path)
    if diff:
        outcome.diffs.append(unified_diff(source.text, text, os.path.relpath(path)))
    else:
        write_atomic(path, source.encode(text))

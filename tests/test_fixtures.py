"""The fixtures run, the linter finds exactly their marked lines, and they still run after every fix.

A marked line ends in `# expect: CODE` or `# expect: CODE, CODE`: told with high or medium confidence; with low
confidence only what is marked is looked at.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import warm
from gpulint.rules import all_rules
from support import less_to_do

from gpulint.findings import Confidence, Finding
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

FIXTURES = Path(__file__).parents[1] / "fixtures"
SCRIPTS = sorted(FIXTURES.glob("*.py"))
PROJECT = FIXTURES / "project"
PROJECT_FILES = sorted(PROJECT.rglob("*.py"))
# One script takes 3 to 5 s alone on an idle core; the rest is room for a busy machine.
RUN_SECONDS = 90

EXPECT = re.compile(r"#\s*expect:\s*(GPU\d{3}(?:\s*,\s*GPU\d{3})*)\s*$")
# What these rules claim is shown by a whole script, not only by a rule's own examples.
SHOWN = {"GPU101", "GPU102", "GPU103", "GPU201", "GPU301", "GPU303", "GPU401", "GPU402", "GPU501", "GPU502"}
SHOWN |= {"GPU105", "GPU106", "GPU107", "GPU202", "GPU203", "GPU204", "GPU302", "GPU304"}

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None, reason="torch is not installed; fixtures import it"
)
each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def expected(text: str) -> list[tuple[int, str]]:
    """The (line, code) pairs marked in `text`, sorted."""
    pairs: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (match := EXPECT.search(token.string)):
            pairs += [(token.start[0], code.strip()) for code in match[1].split(",")]
    return sorted(pairs)


MARKED = [path for path in SCRIPTS if expected(path.read_text(encoding="utf-8"))]


@cache
def implemented() -> frozenset[str]:
    return frozenset(rule.code for rule in all_rules())


def told(text: str, name: str) -> list[Finding]:
    """What is found, without what is of low confidence and not marked."""
    marked = set(expected(text))
    return [
        item
        for item in lint_text(text, name, in_force(text))
        if item.confidence is not Confidence.LOW or (item.line, item.code) in marked
    ]


def in_force(text: str) -> RuleSet:
    """The rules that are on by default, and the others that the text expects something of."""
    marked = {code for _, code in expected(text)}
    found = tuple(rule for rule in all_rules() if rule.default or rule.code in marked)
    return RuleSet(found, confidence=Confidence.LOW)


def run(path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a script on the CPU, on one thread. Raises TimeoutExpired after `RUN_SECONDS`."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}
    return warm.run_torch(
        [sys.executable, str(path), *less_to_do(path)],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


def assert_ran(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.strip() or result.stderr.strip(), "a training script prints its progress"


def test_there_are_enough_fixtures() -> None:
    assert len(SCRIPTS) >= 16
    marked = Counter(code for path in SCRIPTS for _, code in expected(path.read_text(encoding="utf-8")))
    assert set(marked) >= SHOWN
    assert len(SCRIPTS) - len(MARKED) >= 5
    crossing = {code for path in PROJECT_FILES for _, code in expected(path.read_text(encoding="utf-8"))}
    assert crossing >= {"GPU101", "GPU102", "GPU104", "GPU105", "GPU201", "GPU501"}


@each_script
def test_is_a_whole_script(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text, feature_version=(3, 10)))
    assert docstring is not None
    assert len(docstring.splitlines()) == 2
    assert "GPU1" not in docstring
    assert 60 <= len(text.splitlines()) <= 160
    assert 'if __name__ == "__main__":' in text
    assert "argparse" in text
    unread = [line for line in text.splitlines() if "expect:" in line and not EXPECT.search(line)]
    assert unread == []


@needs_torch
@each_script
def test_runs_on_the_cpu(script: Path) -> None:
    assert_ran(run(script, script.parent))


@each_script
def test_exactly_the_marked_lines_are_found(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    found = sorted((item.line, item.code) for item in told(text, script.name))
    assert found == [(line, code) for line, code in expected(text) if code in implemented()]


@needs_torch
@pytest.mark.parametrize("script", MARKED, ids=lambda path: path.stem)
def test_runs_after_every_fix(script: Path, tmp_path: Path) -> None:
    fixing = pytest.importorskip("gpulint.fix.fixing")
    text = script.read_text(encoding="utf-8")
    if not {code for _, code in expected(text)} & implemented():
        pytest.skip("no rule of this fixture is there yet")

    def lint(source: str) -> list[Finding]:
        return told(source, script.name)

    if not any(finding.fix for finding in lint(text)):
        pytest.skip("none of its findings can be fixed by machine")
    fixed = fixing.fix_text(text, lint, True).text
    assert fixed != text
    target = tmp_path / script.name
    target.write_text(fixed, encoding="utf-8")
    assert_ran(run(target, tmp_path))


@needs_torch
def test_project_runs_on_the_cpu() -> None:
    assert_ran(run(PROJECT / "train.py", PROJECT))


@pytest.mark.parametrize("path", PROJECT_FILES, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_a_project_file_alone_gives_no_false_alarm(path: Path) -> None:
    """Every finding of the project crosses a file, so a file read alone may hide some but must not invent any."""
    text = path.read_text(encoding="utf-8")
    found = {(item.line, item.code) for item in told(text, path.name)}
    assert found <= set(expected(text))

"""The linter finds exactly the marked lines of the fixtures. That they run, and what their fixes change, is in
`trial/test_fixtures_run.py` and `test_safe_fixes.py`.

A marked line ends in `# expect: CODE` or `# expect: CODE, CODE`: told with high confidence; with low
confidence only what is marked is looked at.
"""

from collections import Counter
from pathlib import Path

import pytest
from gpulint.rules import all_rules
from test_cases import labels

from gpulint.findings import Confidence, Finding
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

FIXTURES = Path(__file__).parents[1] / "fixtures"
SCRIPTS = sorted(FIXTURES.glob("*.py"))
PROJECT = FIXTURES / "project"
PROJECT_FILES = sorted(PROJECT.rglob("*.py"))
# What these rules claim is shown by a whole script, not only by a rule's own examples.
SHOWN = {"GPU101", "GPU102", "GPU103", "GPU201", "GPU301", "GPU303", "GPU401", "GPU402", "GPU501", "GPU502"}
SHOWN |= {"GPU105", "GPU106", "GPU107", "GPU202", "GPU203", "GPU204", "GPU302", "GPU304"}

each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def expected(text: str) -> list[tuple[int, str]]:
    """The (line, code) pairs marked in `text`, sorted."""
    return sorted((row, code) for row, kind, code in labels(text) if kind == "expect")


MARKED = [path for path in SCRIPTS if expected(path.read_text(encoding="utf-8"))]


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


def test_there_are_enough_fixtures() -> None:
    assert len(SCRIPTS) >= 16
    marked = Counter(code for path in SCRIPTS for _, code in expected(path.read_text(encoding="utf-8")))
    assert set(marked) >= SHOWN
    assert len(SCRIPTS) - len(MARKED) >= 5
    crossing = {code for path in PROJECT_FILES for _, code in expected(path.read_text(encoding="utf-8"))}
    assert crossing >= {"GPU101", "GPU102", "GPU104", "GPU105", "GPU201", "GPU501"}


@each_script
def test_exactly_the_marked_lines_are_found(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.count("expect:") == len({row for row, _ in expected(text)})
    found = sorted((item.line, item.code) for item in told(text, script.name))
    assert found == [(line, code) for line, code in expected(text)]


@pytest.mark.parametrize("path", PROJECT_FILES, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_a_project_file_alone_gives_no_false_alarm(path: Path) -> None:
    """Every finding of the project crosses a file, so a file read alone may hide some but must not invent any."""
    text = path.read_text(encoding="utf-8")
    found = {(item.line, item.code) for item in told(text, path.name)}
    assert found <= set(expected(text))

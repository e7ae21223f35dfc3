"""Every rule's documentation is executed: its example is found, its remedy is clean, its fix leads from one to the other."""

import re
from pathlib import Path

import pytest
from gpulint.rules import all_rules

from gpulint.findings import Confidence, Finding
from gpulint.fix.fixing import fix_text
from gpulint.lint.documentation import SECTIONS, page
from gpulint.lint.linter import lint_text
from gpulint.rule import Rule, RuleSet

RULES = RuleSet(all_rules())
SUSPECTING = RuleSet(all_rules(), confidence=Confidence.LOW)

each_rule = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)


def code_in(rule: type[Rule], section: str) -> str:
    """The code of a section of a rule's documentation."""
    found = page(rule).code(section)
    assert found is not None, f"no code under {section}"
    return found


def write(text: str, folder: Path) -> Path:
    """Write an example, of one file or of several that `# file: name` heads; gives the first."""
    parts = re.split(r"^# file: (\S+)\n", text, flags=re.MULTILINE)
    if len(parts) == 1:
        parts = ["", "example.py", text]
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        (folder / name).write_text(body, encoding="utf-8")
    return folder / parts[1]


def found_in(text: str, folder: Path, rules: RuleSet = RULES) -> list[Finding]:
    first = write(text, folder)
    return lint_text(first.read_text(encoding="utf-8"), str(first), rules)


@each_rule
def test_has_every_section_and_a_measured_cost(rule: type[Rule]) -> None:
    sections = page(rule).sections
    for title in SECTIONS:
        assert sections.get(title, "").strip(), f"{rule.code} lacks the section {title}"
    assert re.search(r"\d", sections["What it costs"]), "a cost is a figure"


@each_rule
def test_the_example_is_found_by_this_rule_alone(rule: type[Rule], tmp_path: Path) -> None:
    found = found_in(code_in(rule, "Example"), tmp_path)
    if not found and rule.doubts:  # a rule may have nothing that it is sure of
        found = found_in(code_in(rule, "Example"), tmp_path, SUSPECTING)
    assert {finding.code for finding in found} == {rule.code}


@each_rule
def test_the_remedy_is_clean(rule: type[Rule], tmp_path: Path) -> None:
    assert found_in(code_in(rule, "Use instead"), tmp_path) == []


@each_rule
def test_the_gate_lets_the_example_through(rule: type[Rule]) -> None:
    assert rule.can_fire(code_in(rule, "Example").encode())


@each_rule
def test_the_fix_gives_the_remedy(rule: type[Rule], tmp_path: Path) -> None:
    example = write(code_in(rule, "Example"), tmp_path)
    text = example.read_text(encoding="utf-8")
    if not any(finding.fix for finding in lint_text(text, str(example), RULES)):
        pytest.skip(f"{rule.code} offers no fix for its example")
    result = fix_text(text, lambda changed: lint_text(changed, str(example), RULES), unsafe=True)
    assert result.error is None
    assert result.text == write(code_in(rule, "Use instead"), tmp_path).read_text(encoding="utf-8")

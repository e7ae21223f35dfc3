"""A finding depends neither on which other rules are selected nor on the seed of the process."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from gpulint.rules import MENTIONS, all_rules, names
from support import environment
from test_cases import all_cases, findings

from gpulint.api import check_paths
from gpulint.findings import Finding
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

FIXTURES = sorted(Path(__file__).parents[1].glob("fixtures/**/*.py"))
BY_CODE = {rule.code: rule for rule in all_rules()}
RULES = RuleSet(all_rules())


def unasked(text: str, findings: Iterable[Finding]) -> list[str]:
    """The rules that are certain of something in a text of which they would not be asked: alone, a rule only sees files that
    have its triggers."""
    found = {finding.code for finding in findings if finding.code in BY_CODE and not finding.doubts}
    return [code for code in sorted(found) if not BY_CODE[code].can_fire(text.encode())]


@pytest.mark.parametrize("question", sorted({case.question for case in all_cases()}))
def test_a_rule_selected_alone_is_asked_about_what_it_finds(question: str) -> None:
    cases = (case for case in all_cases() if case.question == question)
    assert {case.name: codes for case in cases if (codes := unasked(case.text, findings(case)))} == {}


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_a_rule_selected_alone_is_asked_about_a_fixture(fixture: Path) -> None:
    text = fixture.read_text(encoding="utf-8")
    assert unasked(text, lint_text(text, fixture.name, RULES)) == []


@pytest.mark.parametrize("code", BY_CODE)
def test_what_a_rule_needs_is_among_what_files_are_looked_through_for(code: str) -> None:
    rule = BY_CODE[code]
    assert any(all(any(word in one for word in MENTIONS) for one in group) for group in rule.triggers)
    assert names()[code] == rule.name


def test_numbers_read_by_tolist(tmp_path: Path) -> None:
    (tmp_path / "rating.py").write_text(
        "import torch\nfrom torchvision import models\n\n\ndef rate(loader):\n"
        "    net = models.resnet18().cuda()\n    marks = []\n    for x in loader:\n"
        "        marks += net(x.cuda()).squeeze().cpu().tolist()\n    return marks\n"
    )
    for options in ({}, {"select": ["GPU201"]}):
        assert [finding.code for finding in check_paths(tmp_path, options)] == ["GPU201"]


# -- nor on the order of sets, which changes with the seed of each process -----------------------------------


ROOT = Path(__file__).parents[1]
SEEDS = ("0", "1", "2", "3")


def test_findings_are_the_same_in_every_process(tmp_path: Path) -> None:
    programs = [
        *sorted(ROOT.glob("fixtures/*.py"))[::15],
        *sorted(ROOT.glob("tests/cases/*/*_bug_*_of_many_forms.py"))[::6],
    ]
    for path in programs:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    flag = "-P" if sys.version_info >= (3, 11) else "-B"
    options = "check --isolated --no-cache --jobs 1 --confidence low --output-format json --exit-zero ."
    command = [sys.executable, flag, "-m", "gpulint", *options.split()]
    started = [
        subprocess.Popen(command, cwd=tmp_path, env=environment(PYTHONHASHSEED=seed), stdout=subprocess.PIPE)
        for seed in SEEDS
    ]
    first, *others = [json.loads(process.communicate(timeout=100)[0]) for process in started]
    assert len(first) > len(programs) / 2
    assert all(other == first for other in others)

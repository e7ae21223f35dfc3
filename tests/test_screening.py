"""The second gate: a clean file never meets libcst, a finding always comes from it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpulint.rules import all_rules

from gpulint import linter, screening
from gpulint.linter import lint_text
from gpulint.rule import Report, Rule, RuleSet

ROOT = Path(__file__).parent.parent
RULES = RuleSet(all_rules())

CLEAN = """\
import torch
from torch import nn

model = nn.Linear(8, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(loader):
    total = 0.0
    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total / len(loader))
"""
LEAKY = CLEAN.replace("loss.item()", "loss")


def _modules_after_check(path: Path) -> tuple[int, set[str]]:
    """The exit status of checking one file in a process of its own, and which packages that loaded."""
    code = (
        "import sys\nfrom gpulint.__main__ import main\n"
        "try:\n    status = main()\nexcept SystemExit as ended:\n    status = ended.code\n"
        "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))\nsys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", "--isolated", "--no-cache", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    loaded = next(line for line in done.stdout.splitlines() if line.startswith("LOADED"))
    return done.returncode, set(loaded.split()[1:])


def test_clean_training_file_is_checked_without_libcst(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(CLEAN)
    status, loaded = _modules_after_check(path)
    assert status == 0
    assert "gpulint" in loaded
    assert not loaded & {"libcst", "torch", "rich"}


def test_file_with_a_finding_is_parsed_by_libcst(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(LEAKY)
    status, loaded = _modules_after_check(path)
    assert status == 1
    assert "libcst" in loaded


def test_every_rule_decides_by_facts_alone() -> None:
    assert [rule.code for rule in all_rules() if not rule.facts_only] == []


def _places(text: str, name: str) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in lint_text(text, name, RULES)]


def _sources() -> Iterator[Path]:
    for folder, step in (("fixtures", 1), ("rules", 1), ("tests/cases", 4)):
        yield from sorted((ROOT / folder).rglob("*.py"))[::step]


def test_both_trees_agree_on_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = reported = 0
    for path in _sources():
        text = path.read_text(encoding="utf-8")
        quick = screening.is_clean(text, path.name, RULES)
        with monkeypatch.context() as patch:
            patch.setattr(linter, "is_clean", lambda *_: False)
            full = lint_text(text, path.name, RULES)
        assert quick == (not [finding for finding in full if finding.code != "GPU001"]), path
        clean += quick
        reported += not quick
    assert clean > 20
    assert reported > 20


def test_syntax_that_this_python_does_not_know_is_left_to_libcst(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str) -> None:
        raise SyntaxError("written for a newer Python")

    expected = _places(LEAKY, "train.py")
    monkeypatch.setattr(screening, "ast", SimpleNamespace(parse=refuse))
    assert not screening.is_clean(CLEAN, "train.py", RULES)
    assert _places(CLEAN, "train.py") == []
    assert _places(LEAKY, "train.py") == expected != []


def test_deep_code_is_left_to_libcst() -> None:
    assert not screening.is_clean("x = " + "(" * 250 + "1" + ")" * 250, "deep.py", RULES)
    assert not screening.is_clean("x = " + "+".join(["a"] * 50_000), "long.py", RULES)


class LooksIntoNodes(Rule):
    """A rule of a project that reads the tree itself."""

    code = "X001"
    name = "looks-into-nodes"
    triggers = ((b"torch",),)

    def check(self, facts: Any, options: Mapping[str, Any]) -> Iterator[Report]:
        import libcst as cst

        assert isinstance(facts.module.node, cst.Module)
        return iter(())


def test_rule_that_looks_into_nodes_always_gets_those_of_libcst() -> None:
    rules = RuleSet((LooksIntoNodes,))
    assert not screening.is_clean(CLEAN, "train.py", rules)
    assert lint_text(CLEAN, "train.py", rules) == []


def test_failure_while_screening_is_met_again_in_the_full_pass() -> None:
    class Broken(LooksIntoNodes):
        facts_only = True

        def check(self, facts: Any, options: Mapping[str, Any]) -> Iterator[Report]:
            raise ZeroDivisionError

    rules = RuleSet((Broken,))
    assert not screening.is_clean(CLEAN, "train.py", rules)
    with pytest.raises(ZeroDivisionError):
        lint_text(CLEAN, "train.py", rules)


def test_unused_suppression_in_a_clean_file_is_reported() -> None:
    text = CLEAN.replace("loss.item()", "loss.item()  # gpulint: ignore[GPU101]")
    assert screening.is_clean(text, "train.py", RULES)
    assert [finding.code for finding in lint_text(text, "train.py", RULES)] == ["GPU001"]


def test_invalid_escapes_in_the_code_warn_nobody(recwarn: pytest.WarningsRecorder) -> None:
    assert screening.is_clean(CLEAN + 'pattern = "\\d"\n', "train.py", RULES)
    assert not recwarn.list

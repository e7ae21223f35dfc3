"""Most files end after the analysis of Python's own tree; libcst parses those that a rule speaks about, once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from gpulint.rules import all_rules

from gpulint.analysis import asked
from gpulint.findings import Severity
from gpulint.lint.linter import lint_text
from gpulint.lint.trees import SourceError
from gpulint.rule import Claimed, Report, Rule, RuleSet

RULES = RuleSet(all_rules())

CLEAN = """\
import torch
from torch import nn

model = torch.hub.load("pytorch/vision", "resnet50")
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
        [sys.executable, "-c", code, "check", "--isolated", "--no-cache", "--fail-on", "info", str(path)],
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


def test_a_file_with_findings_is_analysed_and_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    made, parse = asked.Engine, cst.parse_module
    monkeypatch.setattr(asked, "Engine", lambda *given: (counted.append("analysed"), made(*given))[1])
    monkeypatch.setattr(cst, "parse_module", lambda *given: (counted.append("parsed"), parse(*given))[1])
    found = lint_text(LEAKY, "train.py", RULES)
    assert found
    assert counted[:2] == ["analysed", "parsed"]
    # What follows is each fix's own proof that its text parses.
    assert counted.count("analysed") == 1
    counted.clear()
    assert lint_text(CLEAN, "train.py", RULES) == []
    assert counted == ["analysed"]


@pytest.mark.parametrize(
    "text", ["x = " + "(" * 250 + "1" + ")" * 250, "x = " + "+".join(["a"] * 50_000)], ids=["deep", "long"]
)
def test_deep_code_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="nested too deeply"):
        lint_text("import torch\n" + text, "deep.py", RULES)


class LooksIntoNodes(Rule):
    """A rule of a project that reads the tree itself."""

    code = "X001"
    name = "looks-into-nodes"
    severity = Severity.WARNING
    triggers = ((b"torch",),)

    def claims(self, asked: Any, options: Mapping[str, Any]) -> Iterator[Claimed]:
        assert isinstance(asked.tree, cst.Module)
        for second in (asked.tree.body[1], asked.file.tree.body[1]):
            yield Claimed(second, "", (), lambda at=second: Report(at, "the second statement"))


def test_rule_that_looks_into_nodes_gets_those_of_libcst() -> None:
    found = lint_text(CLEAN, "train.py", RuleSet((LooksIntoNodes,)))
    assert [(one.line, one.column, one.end_line) for one in found] == [(2, 1, 2), (2, 1, 2)]


def test_failure_of_a_rule_is_not_hidden() -> None:
    class Broken(LooksIntoNodes):
        def claims(self, asked: Any, options: Mapping[str, Any]) -> Iterator[Claimed]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lint_text(CLEAN, "train.py", RuleSet((Broken,)))


def test_unused_suppression_in_a_clean_file_is_reported() -> None:
    text = CLEAN.replace("loss.item()", "loss.item()  # gpulint: ignore[GPU101]")
    assert [finding.code for finding in lint_text(text, "train.py", RULES)] == ["GPU001"]


def test_a_comment_at_the_statements_first_row_silences() -> None:
    text = LEAKY.replace(
        "        total += loss\n",
        "        total += (  # gpulint: ignore[GPU101]\n            loss\n        )\n",
    )
    assert [
        finding.line
        for finding in lint_text(text.replace("  # gpulint: ignore[GPU101]", ""), "train.py", RULES)
    ]
    assert lint_text(text, "train.py", RULES) == []


def test_invalid_escapes_in_the_code_warn_nobody(recwarn: pytest.WarningsRecorder) -> None:
    assert lint_text(CLEAN + 'pattern = "\\d"\n', "train.py", RULES) == []
    assert not recwarn.list

"""Most files end after the analysis of Python's own tree; libcst parses those that a rule speaks about, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import libcst as cst
import pytest
from gpulint.rules import all_rules

from gpulint.analysis import asked
from gpulint.findings import Severity
from gpulint.lint.linter import lint_text
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


def test_invalid_escapes_in_the_code_warn_nobody(recwarn: pytest.WarningsRecorder) -> None:
    assert lint_text(CLEAN + 'pattern = "\\d"\n', "train.py", RULES) == []
    assert not recwarn.list

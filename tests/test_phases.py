"""GPU406, which is off by default: where a phase ends that another follows."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpulint.rules import all_rules

from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet([rule for rule in all_rules() if rule.code == "GPU406"])
FITTING = """
import torch
from torch import nn


def fit(model: nn.Module, loader, tests, optimizer, patience):
    best, waited = float("inf"), 0
    for epoch in range(100):
        total = 0.0
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        waited = 0 if total < best else waited + 1
        best = min(best, total)
        if waited > patience:
            model.eval()
            with torch.no_grad():
                right = sum((model(x.cuda()).argmax(1) == y.cuda()).sum().item() for x, y in tests)
            print(right)
            {then}
"""


@pytest.mark.parametrize(("then", "told"), [("break", 0), ("return", 0), ("model.train()", 1)])
def test_a_validation_after_which_no_round_follows_is_no_phase(then: str, told: int, tmp_path: Path) -> None:
    found = lint_text(FITTING.format(then=then), str(tmp_path / "train.py"), RULES)
    assert len(found) == told
    assert all("what this validation has freed" in one.message for one in found)

"""Guards in other files: a finding is taken back where only callers that switch grad off can reach the function."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpulint.rules import all_rules

from gpulint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet(all_rules())

BASE = """
import torch

class Agent:
    def act(self, batch):
        {guard}
            return self.eval_step(batch)

    def eval_step(self, batch):
        raise NotImplementedError
"""

AGENT = """
import torch
from torch import nn

from .base import Agent


class Ranker(Agent):
    def __init__(self, model: nn.Module):
        self.model = model

    def scores(self, batch):
        self.model.eval()
        logits = self.model(batch)
        return logits.argmax(-1).tolist()

    def eval_step(self, batch):
        return self.scores(batch)
"""

UNRELATED = """
import torch

class Other:
    def eval_step(self, batch):
        return batch

    def run(self, batch):
        return self.eval_step(batch)
"""

OVERRIDE = """
import torch

from .agent import Ranker

class Careful(Ranker):
    def eval_step(self, batch):
        return super().eval_step(batch)
"""


GUARDED = BASE.format(guard="with torch.no_grad():")
UNGUARDED = BASE.format(guard="if batch is not None:")


def codes(folder: Path, **files: str) -> list[str]:
    """What is found in the ranker's file of a package with these files beside it."""
    package = folder / "package"
    package.mkdir()
    for name, text in {"__init__": "", "agent": AGENT, **files}.items():
        (package / f"{name}.py").write_text(text)
    path = package / "agent.py"
    return [finding.code for finding in lint_text(AGENT, str(path), RULES)]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ["GPU201"]),
        ({"base": UNGUARDED}, ["GPU201"]),
        ({"base": GUARDED}, []),
        ({"base": GUARDED, "other": UNRELATED}, []),
        ({"base": GUARDED, "careful": OVERRIDE}, []),
        ({"base": GUARDED, "test_agent": UNRELATED.replace("self.eval", "agent.eval")}, []),
        ({"base": GUARDED, "demo": UNRELATED.replace("self.eval", "agent.eval")}, ["GPU201"]),
    ],
    ids=["alone", "unguarded", "base class", "same name", "override", "test", "another caller"],
)
def test_guard_of_a_base_class(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    assert codes(tmp_path, **files) == expected


HELPER = """
def evaluate(agent, loader):
    return [agent.eval_step(batch) for batch in loader]
"""

SCRIPT = """
import torch
from helper import evaluate

{guard}
    print(evaluate(agent, loader))
"""


@pytest.mark.parametrize(
    ("guard", "expected"), [("with torch.no_grad():", []), ("if agent:", ["GPU201"])], ids=["guarded", "bare"]
)
def test_guard_two_files_away(tmp_path: Path, guard: str, expected: list[str]) -> None:
    """A helper without torch hands the call on; the guard stands in the script that calls the helper."""
    assert codes(tmp_path, helper=HELPER, script=SCRIPT.format(guard=guard)) == expected


def test_one_way_in_without_a_guard(tmp_path: Path) -> None:
    torch_helper = "import torch\n" + HELPER
    guarded = SCRIPT.format(guard="with torch.no_grad():")
    bare = SCRIPT.format(guard="if agent:")
    assert codes(tmp_path, helper=torch_helper, script=guarded, other=bare) == ["GPU201"]

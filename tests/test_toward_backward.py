"""What a step collects, and a helper of another file that runs the backward or only looks at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulint.api import check_paths

STEP = """
import torch
from torch import nn
from torch.distributions import Independent, Normal
from .steps import divergence, finish


def step(fabric, net: nn.Module, loader, optimizer):
    means = []
    for chunk in loader:
        mean = net(chunk.cuda())
        means.append(mean)
    means = torch.cat(means)
    loss = divergence(Independent(Normal(means, 1.0), 1))
    finish(fabric, loss, optimizer)
"""

STEPS = """
import torch


def divergence(guess):
    entropy = guess.entropy().mean()
    floor = torch.zeros((), device=entropy.device)
    return torch.max(entropy, floor)


def finish(fabric, loss, optimizer):
    {what}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("what", "expected"),
    [("fabric.backward(loss)", False), ("print(loss.item())", True)],
    ids=["trains", "looks"],
)
def test_backward_in_another_file(tmp_path: Path, what: str, expected: bool) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'package'\n")
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(STEP)
    (package / "steps.py").write_text(STEPS.format(what=what))
    found = {finding.code for finding in check_paths(tmp_path, {})}
    assert ("GPU101" in found) is expected

"""Guards in other files: a finding is taken back where only callers that switch grad off can reach the function."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpulint.rules import all_rules

from gpulint.api import check_paths
from gpulint.findings import Confidence
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet(all_rules())
DOUBTS = RuleSet(all_rules(), confidence=Confidence.LOW)

BASE = """
import torch

class Agent:
    def answer(self, batch):
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
        self.model = model.cuda()

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


PLAIN = """
class Agent:
    pass
"""


def codes(folder: Path, rules: RuleSet = RULES, **files: str) -> list[str]:
    """What is found in the ranker's file of a package with these files beside it."""
    package = folder / "package"
    package.mkdir()
    for name, text in {"__init__": "", "agent": AGENT, **files}.items():
        (package / f"{name}.py").write_text(text)
    path = package / "agent.py"
    return [finding.code for finding in lint_text(AGENT, str(path), rules)]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, []),
        ({"base": PLAIN}, ["GPU201"]),
        ({"base": UNGUARDED}, ["GPU201"]),
        ({"base": GUARDED}, []),
        ({"base": GUARDED, "other": UNRELATED}, []),
        ({"base": GUARDED, "careful": OVERRIDE}, []),
        ({"base": GUARDED, "test_agent": "import pytest" + UNRELATED.replace("self.eval", "agent.eval")}, []),
        # One of two calls it with grad on, for all that is seen: a doubt.
        ({"base": GUARDED, "agent_test": UNRELATED.replace("self.eval", "agent.eval")}, []),
        ({"base": GUARDED, "demo": UNRELATED.replace("self.eval", "agent.eval")}, []),
    ],
    ids=[
        "base class unseen",
        "alone",
        "unguarded",
        "base class",
        "same name",
        "override",
        "test",
        "script named like a test",
        "another caller",
    ],
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
    ("guard", "expected"),
    [
        ("with torch.no_grad():", []),
        ("torch.set_grad_enabled(False)\nif agent:", []),
        ("torch.set_grad_enabled(False)\ntorch.set_grad_enabled(True)\nif agent:", ["GPU201"]),
        ("if agent:", ["GPU201"]),
    ],
    ids=["guarded", "switched off", "switched on again", "bare"],
)
def test_guard_two_files_away(tmp_path: Path, guard: str, expected: list[str]) -> None:
    """A helper without torch hands the call on; the guard stands in the script that calls the helper."""
    assert codes(tmp_path, base=PLAIN, helper=HELPER, script=SCRIPT.format(guard=guard)) == expected


def test_one_way_in_without_a_guard(tmp_path: Path) -> None:
    torch_helper = "import torch\n" + HELPER
    guarded = SCRIPT.format(guard="with torch.no_grad():")
    bare = SCRIPT.format(guard="if agent:")
    assert codes(tmp_path, DOUBTS, base=PLAIN, helper=torch_helper, script=guarded, other=bare) == ["GPU201"]


EVALUATION = """
import torch
from torchvision import models


def main(loader=()):
    model = models.resnet18().cuda()
    for images in loader:
        print(model(images.cuda()).argmax(1).tolist())
"""

GUARDED_CALLER = """
import torch
from package.evaluation import main

with torch.no_grad():
    main()
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("setup.cfg", "", []),
        ("pyproject.toml", '[project.scripts]\nscore = "package.evaluation:main"\n', ["GPU201"]),
        ("pyproject.toml", '[project.gui-scripts]\nscore = "package.evaluation:main"\n', ["GPU201"]),
        ("pyproject.toml", '[tool.poetry.scripts]\nscore = "package.evaluation:main"\n', ["GPU201"]),
        (
            "pyproject.toml",
            '[tool.poetry.scripts]\nscore = { reference = "package.evaluation:main", type = "console" }\n',
            ["GPU201"],
        ),
        ("pyproject.toml", '[project.entry-points."some.plugins"]\nx = "package.evaluation:main"\n', []),
        ("pyproject.toml", '[project.scripts]\nscore = "package.other:main"\n', []),
        ("pyproject.toml", "[project.scripts]\nscore = 3\n", []),
        (
            "setup.cfg",
            "[options.entry_points]\nconsole_scripts =\n    other = package:run\n    score = package.evaluation:main\n",
            ["GPU201"],
        ),
        (
            "setup.cfg",
            "[options.entry_points]\nconsole_scripts =\n    a = package:run\n[b]\nplugin = package.evaluation:main\n",
            [],
        ),
        (
            "setup.py",
            "setup(entry_points={'console_scripts': ['score=package.evaluation:main']})\n",
            ["GPU201"],
        ),
        (
            "setup.py",
            'setup(entry_points="""\n[console_scripts]\nscore = package.evaluation:main\n""")\n',
            ["GPU201"],
        ),
        (
            "setup.py",
            "setup(entry_points={'console_scripts': ['a=b:c'], 'some.plugins': ['x=package.evaluation:main']})\n",
            [],
        ),
        ("setup.py", "setup(entry_points={'console_scripts': []})\n", []),
    ],
)
def test_a_console_script_begins_with_grad_whoever_else_calls_it(
    tmp_path: Path, name: str, text: str, expected: list[str]
) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / name).write_text(text)
    (tmp_path / "measure.py").write_text(GUARDED_CALLER)
    path = tmp_path / "package" / "evaluation.py"
    path.write_text(EVALUATION)
    assert [finding.code for finding in lint_text(EVALUATION, str(path), DOUBTS)] == expected


def test_without_a_project_file_what_is_checked_together_is_the_project(tmp_path: Path) -> None:
    for case in ("one", "two"):
        (tmp_path / case / "tools").mkdir(parents=True)
        (tmp_path / case / "common").mkdir()
        (tmp_path / case / "common" / "meters.py").write_text(
            "class Meter:\n    def __init__(self):\n        self.all = []\n\n"
            "    def update(self, value):\n        self.all.append(value)\n"
        )
        (tmp_path / case / "tools" / "train.py").write_text(
            "import torch\nfrom common.meters import Meter\n\n\n"
            "def train(model, loader, criterion, optimizer):\n    meter = Meter()\n"
            "    for x, y in loader:\n        loss = criterion(model(x), y)\n        optimizer.zero_grad()\n"
            "        loss.backward()\n        optimizer.step()\n        meter.update(loss)\n"
        )
    for path in (tmp_path / "one", tmp_path):
        found = check_paths(path, {})
        assert {f.code for f in found} == {"GPU104"}
    assert len(found) == 2


def test_a_function_of_the_same_name_elsewhere_guards_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "evaluation.py").write_text(
        "import torch\nfrom torch import nn\n\n\ndef evaluate(model: nn.Module, loader):\n    model.eval()\n"
        "    hits = 0\n    for x, y in loader:\n        hits += (model(x.cuda()).argmax(1) == y.cuda()).sum().item()\n    return hits\n"
    )
    other = "import torch\nfrom other import {names}\n\n\ndef main(m, l):\n    with torch.no_grad():\n        return evaluate(m, l)\n"
    for names in ("evaluate as judge, train", "train"):
        (tmp_path / "main.py").write_text(other.format(names=names))
        assert [f.code for f in check_paths(tmp_path, {})] == ["GPU201"]

"""Guards in other files: a finding is taken back where only callers that switch grad off can reach the function, be they several
callers away: in a base class, around the call of an object, in a script."""

from pathlib import Path

import pytest
from gpulint.rules import all_rules

from gpulint.findings import Confidence, Severity
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet(all_rules())
DOUBTS = RuleSet(all_rules(), confidence=Confidence.LOW)

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

PLAIN = """
class Agent:
    pass
"""


def codes(folder: Path, checked: str, rules: RuleSet = RULES, **files: str) -> list[str]:
    """What is found in `checked.py`, a package's file among these."""
    package = folder / "package"
    package.mkdir(exist_ok=True)
    for name, text in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(text)
    path = package / f"{checked}.py"
    return [finding.code for finding in lint_text(path.read_text(), str(path), rules)]


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
    files = {"agent": AGENT, "base": PLAIN, "helper": HELPER, "script": SCRIPT.format(guard=guard)}
    assert codes(tmp_path, "agent", **files) == expected


EVALUATION = """
import torch
from torchvision import models


def main(loader=()):
    model = models.resnet18().cuda()
    for images in loader:
        print(model(images.cuda()).argmax(1).tolist())
"""

CFG = "[options.entry_points]\nconsole_scripts =\n"
GUARDED_CALLER = """
import torch
from package.run import main

with torch.no_grad():
    main()
"""


@pytest.mark.parametrize(
    ("name", "text", "called"),
    [
        ("setup.cfg", "", False),
        ("pyproject.toml", '[project.scripts]\nscore = "package.run:main"\n', True),
        ("pyproject.toml", '[tool.poetry.scripts]\nscore = { reference = "package.run:main" }\n', True),
        ("pyproject.toml", '[project.entry-points."some.plugins"]\nx = "package.run:main"\n', False),
        ("pyproject.toml", '[project.scripts]\nscore = "package.other:main"\n', False),
        ("pyproject.toml", "[project.scripts]\nscore = 3\n", False),
        ("setup.cfg", f"{CFG}    other = package:run\n    score = package.run:main\n", True),
        ("setup.cfg", f"{CFG}    a = package:run\n[b]\nplugin = package.run:main\n", False),
        ("setup.py", "setup(entry_points={'console_scripts': ['score=package.run:main']})\n", True),
        ("setup.py", 'setup(entry_points="""\n[console_scripts]\nscore = package.run:main\n""")\n', True),
        (
            "setup.py",
            "setup(entry_points={'console_scripts': ['a=b:c'], 'b': ['x=package.run:main']})\n",
            False,
        ),
        ("setup.py", "setup(entry_points={'console_scripts': []})\n", False),
    ],
)
def test_a_console_script_begins_with_grad_whoever_else_calls_it(
    tmp_path: Path, name: str, text: str, called: bool
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "measure.py").write_text(GUARDED_CALLER)
    assert codes(tmp_path, "run", DOUBTS, run=EVALUATION) == ["GPU201"] * called


PIPELINE = """
import torch

class Pipeline:
    def __call__(self, x):
        return self._single(x)

    def _single(self, x):
        if self.framework == "torch":
            {guard}
                return self.forward(x)
        else:
            return self.forward(x)
"""

STAGE = """
import torch
from .base import Pipeline
from .finder import Finder

class Stage(Pipeline):
    def __init__(self, path):
        finder = Finder(path)
        self.finder = finder

    def forward(self, x):
        return {"found": self.finder(x)}
"""

FINDER = """
import torch
from torch import nn
from torch.autograd import Variable

class Finder(nn.Module):
    def __init__(self, path):
        super().__init__()
        self.net = nn.Conv2d(3, 8, 3).cuda()

    def forward(self, image):
        x = Variable(image.cuda(), volatile=True)
        return self.net(x).data.cpu().numpy()
"""

GUARD, BARE = "with torch.no_grad():", "if x is not None:"


@pytest.mark.parametrize(("guard", "expected"), [(GUARD, []), (BARE, ["GPU204"])], ids=["guarded", "bare"])
def test_object_called_by_a_stage_whose_base_is_guarded(
    tmp_path: Path, guard: str, expected: list[str]
) -> None:
    """Of two calls in one function the framework decides; the network itself is called as an object."""
    files = {"base": PIPELINE.format(guard=guard), "stage": STAGE, "finder": FINDER}
    found = codes(tmp_path, "finder", **files)
    assert [code for code in found if code == "GPU204"] == expected


LABELER = """
import torch
from nets import load

class Labeler:
    def __init__(self, path):
        self.model = load(path).cuda()
        self.model.eval()

    def __call__(self, x):
        probabilities = self.model(x.cuda())
        return probabilities.argmax(1).tolist()
"""

SETUP = """
import torch
from .labeler import Labeler
from .data import Labelled

def dataset(path):
    labeler = Labeler(path)
    return Labelled(path, labeler=labeler)
"""

DATA = """
import torch

class Labelled:
    def __init__(self, path, labeler):
        self.labeler = labeler

    def __getitem__(self, index):
        x = torch.load(str(index))
        {guard}
            return x, self.labeler(x)
"""


@pytest.mark.parametrize(("guard", "expected"), [(GUARD, []), (BARE, ["GPU201"])], ids=["guarded", "bare"])
def test_object_handed_to_a_data_set(tmp_path: Path, guard: str, expected: list[str]) -> None:
    files = {"labeler": LABELER, "setup": SETUP, "data": DATA.format(guard=guard)}
    assert codes(tmp_path, "labeler", **files) == expected


JUDGE = """
import torch
from torchvision.models import resnet50

class Judge:
    def __init__(self):
        self.net = resnet50().cuda()

    def score(self, loader):
        self.net.eval()
        right = 0
        for images, labels in loader:
            right += (self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item()
        return right
"""


@pytest.mark.parametrize(
    ("exports", "severity"),
    [("", Severity.INFO), ("from .judge import Judge", Severity.WARNING)],
    ids=["kept", "exported"],
)
def test_method_of_a_class_that_a_package_exports(tmp_path: Path, exports: str, severity: Severity) -> None:
    """Nothing in the program calls it; whoever is given the class may."""
    (tmp_path / "pyproject.toml").write_text("")
    files = {"__init__": exports, "run": "if __name__ == '__main__':\n    print(1)\n"}
    assert codes(tmp_path, "judge", judge=JUDGE, **files) == ["GPU201"]
    path = tmp_path / "package" / "judge.py"
    (found,) = lint_text(JUDGE, str(path), RULES)
    assert found.severity is severity

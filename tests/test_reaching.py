"""Guards that stand several callers away: in a base class, around the call of an object, in the one who exports."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpulint.rules import all_rules

from gpulint.findings import Confidence
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet(all_rules())
DOUBTS = RuleSet(all_rules(), confidence=Confidence.LOW)


def codes(folder: Path, checked: str, rules: RuleSet = RULES, **files: str) -> list[str]:
    """What is found in `checked.py`, a package's file among these."""
    package = folder / "package"
    package.mkdir(exist_ok=True)
    for name, text in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(text)
    path = package / f"{checked}.py"
    return [finding.code for finding in lint_text(path.read_text(), str(path), rules)]


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
        return {{"found": self.finder(x){more}}}
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
    files = {"base": PIPELINE.format(guard=guard), "stage": STAGE.format(more=""), "finder": FINDER}
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

OTHER = """
import torch

class Teacher:
    def step(self, x):
        return self.labeler(self.teacher, x)
"""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"data": DATA.format(guard=GUARD)}, []),
        ({"data": DATA.format(guard=BARE)}, ["GPU201"]),
        ({"data": DATA.format(guard=GUARD), "other": OTHER}, []),
        # What has the same name elsewhere is not seen to be the same.
        ({"data": DATA.format(guard=GUARD), "other": OTHER.replace("self.teacher, ", "")}, []),
    ],
    ids=["guarded", "bare", "other arguments", "same name"],
)
def test_object_handed_to_a_data_set(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    assert codes(tmp_path, "labeler", labeler=LABELER, setup=SETUP, **files) == expected


SAMPLING = """
import torch
from torch import nn

def {private}points(model: nn.Module, batch, count):
    model.eval()
    drawn = []
    for x in batch:
        drawn.append(model(x.cuda()).argmax(1).tolist())
    return drawn
"""

MODEL = """
import torch
from .sampling import points

class Model(torch.nn.Module):
    def sample(self, batch, count):
        return points(self, batch, count)
"""

TESTER = """
import torch

class Tester:
    def evaluate(self, model, loader):
        {guard}
            for batch in loader:
                yield self._predictions(model, batch)

    def _predictions(self, model, batch):
        return model.sample(batch, 5)

class NoisyTester(Tester):
    def noise(self, x):
        return self.noise_source.sample(x)
"""


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        (GUARD, []),
        ("with torch.set_grad_enabled(self.tuning):", []),
        ("if loader is not None:", ["GPU201"]),
    ],
    ids=["guarded", "decided", "bare"],
)
def test_template_of_a_tester(tmp_path: Path, guard: str, expected: list[str]) -> None:
    """`sample` of something else, with other arguments, is no caller."""
    files = {
        "sampling": SAMPLING.format(private=""),
        "model": MODEL,
        "tester": TESTER.format(guard=guard),
    }
    assert codes(tmp_path, "sampling", **files) == expected


EXPORTER = """
import torch
from .exporting import export
from contextlib import ExitStack

class Exporter:
    def export(self, model, batch):
        with ExitStack() as stack:
            {enter}
            return export(model, batch, 1)
"""

EXPORTING = SAMPLING.format(private="_") + (
    "\n\ndef export(model, batch, count):\n    return _points(model, batch, count)\n"
    "\n\ndef _old(model, batch):\n    return _points(model, batch, 0)\n"
)


@pytest.mark.parametrize(
    ("enter", "expected"),
    [("stack.enter_context(torch.no_grad())", []), ("stack.callback(print)", ["GPU201"])],
    ids=["guarded", "bare"],
)
def test_exporter_beside_dead_code(tmp_path: Path, enter: str, expected: list[str]) -> None:
    files = {"exporting": EXPORTING, "exporter": EXPORTER.format(enter=enter)}
    assert codes(tmp_path, "exporting", **files) == expected


TUNER = """
import torch

class Tuner:
    def __init__(self, model):
        self.model = model.cuda().eval()

    def tune(self, batches):
        worst = 0.0
        for x in batches:
            worst = max(worst, self.model(x.cuda()).abs().max().item())
        return worst


class Quantizer:
    {decorator}
    def transform(self, model, batches, alpha):
        if alpha == "auto":
            tuner = make(Tuner)(model)
            alpha = tuner.tune(batches)
        return alpha
"""


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [("@torch.no_grad()", []), ("@staticmethod", ["GPU201"])],
    ids=["guarded", "bare"],
)
def test_caller_in_the_same_file_that_is_not_followed(
    tmp_path: Path, decorator: str, expected: list[str]
) -> None:
    assert codes(tmp_path, "tuner", tuner=TUNER.format(decorator=decorator)) == expected


SCORER = """
import torch
from .evaluation import rate

class Scorer(Rated):
    def __init__(self, model):
        self.model = model.cuda().eval()

    def score(self, x):
        return self.model(x.cuda()).argmax(1).tolist()
"""

RATED = """
class Rated:
    def rate(self, x):
        return self.score(x)
"""

EVALUATION = """
def rate_all(scorer, batches):
    return [scorer.rate(x) for x in batches]

def main(scorer, batches):
    print(rate_all(scorer, batches))
"""

CAREFUL = """
import torch
from .evaluation import rate_all

def validate(scorer, batches):
    with torch.no_grad():
        return rate_all(scorer, batches)
"""


def test_one_careful_user_of_an_evaluation_without_torch(tmp_path: Path) -> None:
    """What knows nothing of torch hands everything on: some of its callers switch grad off, which is a doubt."""
    scorer = SCORER.replace("from .evaluation import rate", "from .rated import Rated")
    files = {"rated": RATED, "evaluation": EVALUATION, "careful": CAREFUL}
    assert codes(tmp_path, "scorer", scorer=scorer, **files) == []
    assert codes(tmp_path, "scorer", DOUBTS) == ["GPU201"]


ENCODING = """
import torch
from tables import loader

class Estimator:
    def __init__(self, task):
        self.task = task
        self.task.to("cuda")

    def encode(self, table):
        self.task.net.eval()
        found = []
        for numbers, categories in loader(table):
            found.append(self.task.net.encode(numbers, categories).detach().cpu())
        return torch.cat(found)
"""

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def encode(self, data, grad=False):
        if grad:
            return self.embedding(data)
        {guard}
            return self.embedding(data)
"""

OTHER_NET = NET.replace("Net(", "Other(").format(guard="if self.deep:")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"net": NET.format(guard=GUARD)}, []),
        ({"net": NET.format(guard="if data is not None:")}, ["GPU201"]),
        ({"net": NET.format(guard=GUARD), "other": OTHER_NET}, ["GPU201"]),
    ],
    ids=["guarded", "bare", "one of two"],
)
def test_method_that_guards_itself(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    """The class of the network is out of sight, so that what its method does is a doubt; the project has methods of that name."""
    assert codes(tmp_path, "encoding", encoding=ENCODING, **files) == []
    assert set(codes(tmp_path, "encoding", DOUBTS)) >= set(expected)


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
    ("exports", "expected"), [("", []), ("from .judge import Judge", ["GPU201"])], ids=["kept", "exported"]
)
def test_method_of_a_class_that_a_package_exports(tmp_path: Path, exports: str, expected: list[str]) -> None:
    """Nothing in the program calls it; whoever is given the class may."""
    (tmp_path / "pyproject.toml").write_text("")
    files = {"__init__": exports, "run": "if __name__ == '__main__':\n    print(1)\n"}
    assert codes(tmp_path, "judge", judge=JUDGE, **files) == expected
    assert codes(tmp_path, "judge", DOUBTS, judge=JUDGE, **files) == ["GPU201"]

"""What other files and the place of a file decide: backwards out of sight, tests, folders above the project."""

from pathlib import Path

import pytest

from gpulint.api import check_paths

KEEPING = """
import torch

def train(net, criterion, optimizer, loader):
    losses = []
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        torch.cuda.empty_cache()
    return [float(loss) for loss in losses]
"""


COLLECTED = """

def test_training():
    train(None, [])
"""
TEST_CASE = """

class Parity(unittest.TestCase):
    def runTest(self):
        train(None, [])
"""


def test_files_of_tests_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    for name, more in (
        ("tests/parity.py", ""),
        ("package/test_utils/helpers.py", ""),
        ("package/testing/helpers.py", ""),
        ("package/testing/test_main.py", COLLECTED + SCRIPT_GUARD),
        ("conftest.py", ""),
        ("test_parity.py", COLLECTED),
        ("parity_test.py", COLLECTED),
        ("fixture_test.py", "\nimport pytest\n"),
        ("test_case.py", "\nimport unittest\n" + TEST_CASE),
        ("test_class.py", "\n\nclass TestAll:\n    def test_it(self, model):\n        train(model, [])\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(KEEPING + more)
    assert check_paths(tmp_path) == []


SCRIPT_GUARD = '\n\nif __name__ == "__main__":\n    train(object(), [])\n'


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("net_test.py", SCRIPT_GUARD),
        ("test_net.py", SCRIPT_GUARD),
        ("test.py", SCRIPT_GUARD),
        ("testing/evaluate.py", SCRIPT_GUARD),
        ("net_test.py", "\nfrom absl import app, flags\n"),
        ("net_test.py", "\n\ndef test_epoch(net, loader):\n    pass\n\n\ntest_epoch(train, [])\n"),
        ("net_test.py", "\n\ndef test(net, loader):\n    return train(net, loader)\n"),
        ("net_test.py", "\n\nclass TestOptions:\n    def parse(self):\n        return None\n"),
        ("net_test.py", "\n\nclass TestData:\n    def __init__(self):\n        self.test_set = None\n"),
        ("net_test.py", "\nfrom torch import nn\n\nclass NetTest(nn.Module):\n    def test_it(self): ...\n"),
    ],
)
def test_a_script_may_be_named_like_a_test(tmp_path: Path, name: str, more: str) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(KEEPING + more)
    assert [found.code for found in check_paths(tmp_path)] == ["GPU101", "GPU501"]
    (tmp_path / name).write_text(KEEPING + more + "\nimport pytest\n")
    assert check_paths(tmp_path) == [] or name == "test.py"


def test_deprecated_names_are_reported_in_tests_too(tmp_path: Path) -> None:
    (tmp_path / "test_memory.py").write_text("import torch\n\ntorch.cuda.memory_cached()\n")
    assert [found.code for found in check_paths(tmp_path)] == ["GPU603"]


METER = """
class Meter:
    def __init__(self):
        self.total = 0

    def update(self, value):
        self.total += {value}
"""


RUN = """
import torch
from runners.meters import Meter

class Runner:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net.cuda(), optimizer
        self.losses = Meter()

    def step(self, x, y):
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.update(loss)
"""


@pytest.mark.parametrize(
    ("name", "value", "codes"),
    [
        ("runners", "value", ["GPU104"]),
        ("runners", "value.item()", []),
        ("others", "value", []),  # another folder is not taken for the one that is named
    ],
)
def test_a_folder_without_init_names_itself(tmp_path: Path, name: str, value: str, codes: list[str]) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "train.py").write_text(RUN)
    (tmp_path / name / "meters.py").write_text(METER.format(value=value))
    assert [found.code for found in check_paths(tmp_path / name)] == codes


def test_who_calls_a_method_is_sought_in_the_nearest_files_first(tmp_path: Path) -> None:
    far, near = tmp_path / "layers", tmp_path / "trainers"
    far.mkdir()
    near.mkdir()
    for number in range(12):
        (far / f"layer{number}.py").write_text("def loss(found, wanted):\n    return found - wanted\n")
    (near / "base.py").write_text(
        "import torch\n\n\nclass Base:\n"
        "    def __init__(self, net, loader):\n        self.net, self.loader, self.seen = net.cuda(), loader, []\n"
        "        self.optimizer = torch.optim.Adam(net.parameters())\n\n"
        "    def run(self):\n        for batch in self.loader:\n            loss = self.loss(batch)\n"
        "            self.optimizer.zero_grad()\n            loss.backward()\n            self.optimizer.step()\n"
    )
    (near / "own.py").write_text(
        "from trainers.base import Base\nfrom torch.nn.functional import mse_loss\n\n\nclass Own(Base):\n"
        "    def loss(self, batch):\n        found = mse_loss(self.net(batch.cuda()), batch.cuda())\n"
        "        self.seen.append(found)\n        return found\n"
    )
    assert [finding.code for finding in check_paths(near / "own.py")] == ["GPU101"]


# -- calls in every step that a helper makes -----------------------------------------------------------------


TIDY = "import torch\n\n\ndef tidy():\n    torch.cuda.empty_cache()\n"
STEPS = """
def train(model, loader, criterion, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        tidy()
"""


def test_a_helper_of_another_file_is_named_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "tidying.py").write_text(TIDY)
    (tmp_path / "train.py").write_text(f"import torch\nfrom tidying import tidy\n{STEPS}")
    (finding,) = check_paths(tmp_path)
    assert check_paths(tmp_path, {"select": ["GPU501"]}) == [finding]
    assert finding.message.startswith("`torch.cuda.empty_cache()`, which `tidy()` runs in tidying.py, ")
    (place,) = finding.related
    assert (Path(place.filename).name, place.position.row) == ("tidying.py", 5)
    assert finding.fix is None


@pytest.mark.parametrize(
    ("more", "fixed"),
    [
        ("", True),
        ("    if torch.cuda.is_available():\n        torch.cuda.synchronize()\n", True),
        ("    registry.clear()\n", False),
        ("    global seen\n    seen = 0\n", False),
    ],
    ids=["alone", "cleans", "calls", "sets"],
)
def test_a_helper_that_does_more_is_not_taken_out(tmp_path: Path, more: str, fixed: bool) -> None:
    (tmp_path / "train.py").write_text(f"{TIDY}{more}\n{STEPS}")
    (finding,) = check_paths(tmp_path, {"select": ["GPU501"]})
    assert (finding.fix is not None) is fixed

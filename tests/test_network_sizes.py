"""The weights that are seen in a constructor, against those of the network that torch makes: never more."""

import ast
import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.weights import Weight, weight
from gpulint.analysis.project.disk import Project
from gpulint.lint.trees import Trees
from gpulint.source.program import Top

HERE = Path(__file__).parent / "networks"
NETWORKS = [
    (path.stem, node.name)
    for path in sorted(HERE.glob("*.py"))
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.ClassDef)
]


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The modules, importable, where nothing says that they are tests."""
    folder = shutil.copytree(HERE, tmp_path_factory.mktemp("program"), dirs_exist_ok=True)
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path[:] = before
    for name, loaded in list(sys.modules.items()):
        if str(getattr(loaded, "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


def weighed(text: str, path: Path, name: str) -> Weight:
    """What is seen of the network that a class of a file makes where it is given nothing."""
    asked = Asked(
        Trees(f"{text}\nmade = {name}()\n"), str(path), Project(top=Top(str(path.parent), is_whole=True))
    )
    made = asked.file.tree.body[-1]
    return weight(asked.evaluator, asked.evaluator.value_of(made.value, asked.root(asked.file.body)))


@pytest.mark.parametrize(("module", "name"), NETWORKS, ids=str)
def test_no_more_weights_are_seen_than_there_are(module: str, name: str, networks: Path) -> None:
    torch = pytest.importorskip("torch")
    path = networks / f"{module}.py"
    seen = weighed(path.read_text(), path, name)
    with torch.device("meta"):
        network = getattr(importlib.import_module(module), name)()
    assert seen.least <= sum(one.numel() for one in network.parameters())


def test_weights_are_seen(networks: Path) -> None:
    path = networks / "adversarial.py"
    text = f"{path.read_text()}\nclass Plain(nn.Module):\n    def __init__(self, width=8):\n        super().__init__()\n        self.one = nn.Linear(width, 4)\n"
    assert weighed(text, path, "Plain").least == 32


def test_all_kinds_of_networks_are_there() -> None:
    assert len(NETWORKS) >= 5


ENDLESS = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        items, text, width, pairs = [1], "ab", 3, [1]
        for _ in range(60):
            items = items + items
            items += items
            items.extend(items)
            text = text + text
            width = width**31
            pairs = [pairs, pairs]
            nested = []
            nested.append(pairs)
            nested.append(nested)
            pairs == nested
            "%999999999d" % 5, "{:>999999999}".format(1), "%*d" % (999999999, 5)
            list(range(10**12)), sum(range(10**13)), [0] * 10**9, items[::0], range(10**30)[5:9]
            nn.Sequential(pairs, nested)
        while len(items) > 0:
            items.append(1)
        self.layers = nn.Linear(len(items), width)
"""


def test_constructors_that_would_never_end_are_let_be(tmp_path: Path) -> None:
    assert weighed(ENDLESS, tmp_path / "endless.py", "Net").least == 0

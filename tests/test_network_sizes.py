"""The weights that are counted by reading a constructor, against those of the network that torch makes."""

from __future__ import annotations

import ast
import importlib
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpulint.analysis.code.lower import lower
from gpulint.analysis.driver import analyse
from gpulint.analysis.file.project import Project
from gpulint.analysis.questions.size.constructing import Constructing

from gpulint.source.program import Top

HERE = Path(__file__).parent / "networks"
NETWORKS = [
    (path.stem, node.name)
    for path in sorted(HERE.glob("*.py"))
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.ClassDef)
    and path.stem not in ("options", "settings")
    and node.name not in ("Block",)
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


@pytest.mark.parametrize(("module", "name"), NETWORKS, ids=str)
def test_weights_are_counted_as_torch_counts_them(module: str, name: str, networks: Path) -> None:
    torch = pytest.importorskip("torch")
    path = networks / f"{module}.py"
    facts = analyse(lower(ast.parse(path.read_text())), str(path), Project(top=Top(str(networks))))
    counted = Constructing().of_class(facts.analysis.classes[name])
    with torch.device("meta"):
        network = getattr(importlib.import_module(module), name)()
    # Biases and norms, which are not counted, have one number for each row of a layer.
    matrices = sum(one.numel() for one in network.parameters() if one.dim() > 1)
    assert (counted.seen, counted.complete) == (True, True)
    assert counted.weights == pytest.approx(matrices, rel=0.02)


def test_all_kinds_of_networks_are_there() -> None:
    assert len(NETWORKS) >= 12


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
    path = tmp_path / "endless.py"
    path.write_text(ENDLESS)
    facts = analyse(lower(ast.parse(ENDLESS)), str(path), Project())
    started = time.process_time()
    counted = Constructing().of_class(facts.analysis.classes["Net"])
    assert time.process_time() - started < 10
    assert counted is not None
    assert not counted.complete

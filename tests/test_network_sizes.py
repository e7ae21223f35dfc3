"""The weights that are counted by reading a constructor, against those of the network that torch makes."""

from __future__ import annotations

import ast
import importlib
import shutil
import sys
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

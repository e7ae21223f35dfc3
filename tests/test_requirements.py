"""The version of torch that a project requires."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support import gpulint

from gpulint.analysis.project.disk import Project
from gpulint.analysis.project.file import File
from gpulint.analysis.project.program import Program
from gpulint.analysis.project.requirements import newest_torch, oldest_torch, told_torch
from gpulint.source.program import Top


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["numpy", "torch>=2.2"]\n', (2, 2)),
        ("pyproject.toml", '[project]\ndependencies = ["torchvision>=0.9", "torch-geometric>=2.0"]\n', None),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^1.13"\n', (1, 13)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = ">=2.5"}\n', (2, 5)),
        ("setup.py", "setup(install_requires=['torch<3'])\n", None),
        ("setup.cfg", "[options]\ninstall_requires =\n    torch ~= 2.0\n    numpy\n", (2, 0)),
        ("requirements.txt", "numpy>=1\ntorch==2.0.0\n", (2, 0)),
        ("environment.yml", "- pytorch=1.8.1=py3.8_cuda10.2\n- pytorch-lightning=1.3\n", (1, 8)),
        ("env.yaml", "dependencies:\n  - pytorch::pytorch>=2.1\n  - pip:\n    - torchvision==0.9\n", (2, 1)),
        ("requirements.txt", "http://a.org/whl/torch-0.3.0.post4-cp35-cp35m-linux_x86_64.whl\n", (0, 3)),
    ],
)
def test_the_oldest_torch_that_a_project_requires(
    tmp_path: Path, name: str, text: str, expected: tuple[int, int] | None
) -> None:
    (tmp_path / name).write_text(text)
    if name == "requirements.txt":
        (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup()\n")
    package = tmp_path / "src" / "net"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    project = Project(top=Top(str(tmp_path), is_whole=True))
    project.begin()
    assert oldest_torch(project, str(package / "train.py")) == expected
    if expected is not None:
        assert str(tmp_path / name) in dict(project.dependencies)


def test_without_a_project_nothing_is_known() -> None:
    assert oldest_torch(None, "train.py") is None


BARE = '[project]\ndependencies = ["{}"]\n'
POETRY = '[tool.poetry.dependencies]\ntorch = "{}"\n'


@pytest.mark.parametrize(
    ("form", "requirement", "expected"),
    [
        (BARE, "torch==2.0.*", (2, 0)),
        (BARE, "torch~=1.11.0", (1, 11)),
        (BARE, "torch~=1.11", (1, 99)),
        (BARE, "torch>=1.8,<2.4", (2, 3)),
        (BARE, "torch<2.4.1", (2, 4)),
        (BARE, "torch<2", (1, 99)),
        (BARE, "torch>=2.2", None),
        (BARE, "torch!=2.2", None),
        (BARE, "torch", None),
        (POETRY, "1.13.1", (1, 13)),  # a bare version is that version
        (POETRY, "^1.13", (1, 99)),
    ],
)
def test_the_newest_torch_that_a_project_runs_with(
    tmp_path: Path, form: str, requirement: str, expected: tuple[int, int] | None
) -> None:
    (tmp_path / "pyproject.toml").write_text(form.format(requirement))
    assert _newest(tmp_path, "import torch\n") == expected


def _newest(folder: Path, text: str) -> tuple[int, int] | None:
    project = Project(top=Top(str(folder), is_whole=True))
    project.begin()
    (folder / "train.py").write_text(text)
    file = File(str(folder / "train.py"), text, ast.parse(text))
    return newest_torch(Program(file, project, {}), file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from torch._six import inf\n", (1, 99)),
        ("from torch import _six\n", (1, 99)),
        ("from torch.autograd.gradcheck import zero_gradients\n", (1, 8)),
        ("try:\n    from torch._six import inf\nexcept ImportError:\n    from torch import inf\n", None),
        ("from mine import _six\n", None),
    ],
)
def test_what_is_imported_bounds_the_torch_as_a_requirement_does(
    tmp_path: Path, text: str, expected: tuple[int, int] | None
) -> None:
    assert _newest(tmp_path, text) == expected
    (tmp_path / "helper.py").write_text(text)
    assert _newest(tmp_path, "import torch\nimport helper\n") == expected
    (tmp_path / "pyproject.toml").write_text(BARE.format("torch>=1.7"))
    assert _newest(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Install pytorch (Version 0.2) and torchvision\n", (0, 2)),
        ("* __Pytorch 0.3.0__\n", (0, 3)),
        ("`torch==0.3.1`, tested with Pytorch v0.3\n", (0, 3)),
        ("PyTorch 0.3.1, and on the branch `new` PyTorch 1.0\n", (1, 0)),
        ("PyTorch >= 0.3\n", None),
        ("Needs PyTorch 0.3+ and torchvision 0.2\n", None),
    ],
)
def test_what_a_readme_says_of_torch(tmp_path: Path, text: str, expected: tuple[int, int] | None) -> None:
    (tmp_path / "README.md").write_text(text)
    project = Project(top=Top(str(tmp_path), is_whole=True))
    assert told_torch(project, str(tmp_path / "train.py")) == expected


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ("requirements.txt torch==0.3.1", ""),
        ("README.md Needs PyTorch 0.3.", ""),
        ("README.md Supports PyTorch 0.4.", "    with torch.no_grad():"),  # which decorates from 0.4.1 on
        ("README.md PyTorch 1.0", "@torch.no_grad()"),
    ],
)
def test_an_evaluation_is_mended_with_what_the_torch_of_the_project_has(
    tmp_path: Path, said: str, fix: str
) -> None:
    name, _, text = said.partition(" ")
    (tmp_path / name).write_text(text + "\n")
    (tmp_path / "evaluate.py").write_text(
        "import torch\nfrom torch import nn\n\n\ndef accuracy(loader, classes):\n"
        "    net = nn.Sequential(nn.Conv2d(3, 512, 3), nn.Conv2d(512, 512, 3)).cuda().eval()\n    right = 0\n"
        "    for x, y in loader:\n        right += (net(x.cuda()).argmax(1) == y.cuda()).sum().item()\n    return right\n"
    )
    told = gpulint(
        "--no-cache", "--isolated", "--select", "GPU201", "--output-format", "concise", cwd=tmp_path
    )
    assert b"GPU201" in told.stdout
    assert (told.returncode, b"fixable" in told.stdout) == (int(bool(fix)), bool(fix))
    gpulint("--no-cache", "--isolated", "--select", "GPU201", "--fix", cwd=tmp_path)
    mended = (tmp_path / "evaluate.py").read_text().splitlines()
    assert [one for one in mended if "no_grad" in one] == ([fix] if fix else [])


@pytest.mark.parametrize(("version", "offered"), [("1.13.1+cu116", False), ("2.4.0", True)])
def test_a_setting_is_offered_where_the_torch_of_the_project_knows_it(
    tmp_path: Path, version: str, offered: bool
) -> None:
    (tmp_path / "requirements.txt").write_text(f"torch=={version}\n")
    (tmp_path / "sample.py").write_text(
        'import os\n\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:64"\nimport torch\n'
    )
    told = gpulint("--no-cache", "--select", "GPU601", ".", cwd=tmp_path).stdout.decode()
    assert "GPU601" in told
    assert ("use expandable segments instead" in told) == offered

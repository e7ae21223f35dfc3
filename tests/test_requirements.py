"""The version of torch that a project requires, how far a program goes that nothing marks as a project, and from where its
files import."""

import ast
import warnings
from pathlib import Path

import pytest
from support import gpulint

from gpulint.analysis.project.disk import Project
from gpulint.analysis.project.file import Class, File
from gpulint.analysis.project.program import Program
from gpulint.analysis.project.requirements import newest_torch, oldest_torch, told_torch
from gpulint.source import program
from gpulint.source.importing import added_folders, parsed
from gpulint.source.program import UNKNOWN_TOP, Top, top_at, top_of


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


# -- how far a program goes that nothing marks as a project --------------------------------------------------


NETWORK = "from torch import nn\n\nclass Network(nn.Module):\n    pass\n"


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def finds(path: str, qualified: str, top: Top | None = None) -> bool:
    """Whether what a file imports by this name is found."""
    project = Project(top=top_of([path]) if top is None else top)
    text = Path(path).read_text()
    file = File(path, text, ast.parse(text))
    return isinstance(Program(file, project, {}).imported(file, qualified), Class)


def test_imports_start_where_the_tool_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, model__net=NETWORK, tools__train="from model.net import Network\n")
    monkeypatch.chdir(tmp_path)
    assert finds("tools/train.py", "model.net.Network")
    assert finds(str(tmp_path / "tools/train.py"), "model.net.Network")
    assert not finds("tools/train.py", "model.net.Network", UNKNOWN_TOP)


def test_a_package_at_the_top_does_not_lead_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, other=NETWORK)
    checkout = tmp_path / "checkout"
    write(checkout, train="import other\n", model=NETWORK)
    (checkout / "__init__.py").touch()
    monkeypatch.chdir(checkout)
    assert finds("train.py", "model.Network")
    assert not finds("train.py", "other.Network")


@pytest.mark.parametrize(
    "line",
    [
        "sys.path.append('../library')",
        "sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'library'))",
        "sys.path.append(str(Path(__file__).resolve().parent.parent / 'library'))",
        "sys.path.append(str(Path(__file__).parents[1].joinpath('library')))",
        "HERE = os.path.dirname(__file__)\nROOT = os.path.dirname(HERE)\nsys.path.append(ROOT + '/library')",
        "if True:\n    sys.path.append(os.path.join(os.path.split(os.path.dirname(__file__))[0], 'library'))",
    ],
)
def test_imports_start_at_what_a_file_adds_to_the_search_path(line: str, tmp_path: Path) -> None:
    script = f"import os, sys\nfrom pathlib import Path\n{line}\nfrom layers import Network\n"
    write(tmp_path, library__layers=NETWORK, scripts__train=script)
    assert finds(str(tmp_path / "scripts/train.py"), "layers.Network", UNKNOWN_TOP)


@pytest.mark.parametrize("line", ["sys.path.append(folder)", "sys.path.extend(['a'])", "paths.append('a')"])
def test_what_is_not_known_is_not_added(line: str) -> None:
    assert added_folders(ast.parse(line), "/program/train.py") == ()


def test_the_program_is_the_folder_that_the_tool_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, a="", sub__b="")
    monkeypatch.chdir(tmp_path)
    assert top_of(["a.py", "sub/b.py"]) == Top(str(tmp_path), is_whole=True)
    assert top_of(["sub/b.py"]) == Top(str(tmp_path))  # what else there is, is not known for sure
    monkeypatch.chdir(tmp_path / "sub")
    assert top_of(["../a.py", "b.py"]) == Top(str(tmp_path), is_whole=True)


def test_too_many_files_are_several_programs_and_what_is_mostly_something_else_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "_MOST_FILES", 2)
    write(tmp_path, many__a="", many__b="")
    assert top_at(str(tmp_path)) == Top(str(tmp_path))
    write(tmp_path, many__c="")
    assert top_at(str(tmp_path)) == Top(str(tmp_path), apart=True)
    for number in range(201):
        (tmp_path / f"{number}.png").touch()
    assert top_at(str(tmp_path)) == UNKNOWN_TOP


def test_what_is_checked_together_does_not_bound_a_project_that_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook before commits gives the files that are staged, an editor may have opened a part."""
    (tmp_path / ".git").mkdir()
    write(tmp_path, lib__model=NETWORK, examples__train="from lib.model import Network\n", examples__eval="")
    (tmp_path / "lib/__init__.py").touch()
    for folder in (tmp_path, tmp_path / "examples"):
        monkeypatch.chdir(folder)
        paths = [str(tmp_path / "examples/train.py"), str(tmp_path / "examples/eval.py")]
        assert top_of(paths) == top_of(paths[:1]) == top_at(str(tmp_path / "examples")) == UNKNOWN_TOP
        assert finds(paths[0], "lib.model.Network", top_of(paths))


def test_files_with_a_word_are_the_same_however_many_words_were_asked_for(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    texts = {"a.py": "def one(): other_one\n", "b.py": "one = 'größe'\n", "c.py": "größe = two\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    project, origin = Project(), str(tmp_path / "a.py")

    def found(word: str) -> list[str]:
        return [Path(path).name for path, _ in project.files_with(origin, word)]

    for number in range(200):
        assert found(f"word{number}") == []
    assert found("one") == ["a.py", "b.py"]
    assert found("two") == ["c.py"]
    assert found("größe") == ["b.py", "c.py"]


def test_what_python_warns_of_in_a_file_is_not_repeated() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert parsed(b'pattern = "\\."\n') is not None
    assert not told

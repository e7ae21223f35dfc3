"""How far a program goes that nothing marks as a project, and from where its files import."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import pytest

from gpulint.analysis.project.disk import Project
from gpulint.analysis.project.file import Class, File
from gpulint.analysis.project.program import Program
from gpulint.source import program
from gpulint.source.importing import added_folders, parsed
from gpulint.source.program import UNKNOWN_TOP, Top, top_at, top_of

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

"""Which files belong to the user's program."""

import os
from pathlib import Path

import pytest

from gpulint.runtime.parent.runner import Run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (
        ("tools/train.py", "import beside\nfrom engine.loop import train\nimport elsewhere, installed\n"),
        ("tools/beside.py", ""),
        ("engine/__init__.py", ""),
        ("engine/loop.py", "from . import model\n"),
        ("engine/model.py", ""),
        ("site-packages/installed.py", ""),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def names(run: Run, project: Path) -> list[str]:
    return [os.path.relpath(path, project) for path in run.files()]


def test_a_scripts_own_modules_lie_beside_it(project: Path) -> None:
    run = Run(str(project / "tools/train.py"), environment={"PYTHONPATH": ""})
    assert names(run, project) == ["tools/train.py", "tools/beside.py"]


def test_folders_above_it_on_pythonpath_are_its_own_and_others_are_not(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "elsewhere.py").write_text("", encoding="utf-8")
    paths = os.pathsep.join([".", str(other), str(project / "site-packages")])
    run = Run("tools/train.py", cwd=str(project), environment={"PYTHONPATH": paths})
    found = ["tools/train.py", "tools/beside.py", "engine/__init__.py", "engine/loop.py", "engine/model.py"]
    assert sorted(names(run, project)) == sorted(found)


def test_a_program_that_is_no_file_has_none(project: Path) -> None:
    assert Run("no.such.module", module=True, cwd=str(project)).files() == []

"""The wheel as a stranger gets it: built from the sources, installed where nothing else is."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support import HELD, environment, run_command, sources

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_command(*command, cwd=cwd, env=environment(PYTHONPATH=None))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy without the link `gpulint/rules`, as it is checked out where there are no links."""
    home = sources(tmp_path_factory.mktemp("wheel"))
    (home / "gpulint/rules").unlink()
    (home / "gpulint/rules").write_text("../rules")
    done = run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", "dist", ".", cwd=home)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("no package index within reach")
    assert done.returncode == 0, done.stderr
    (made,) = (home / "dist").glob("*.whl")
    return made


def test_everything_is_in_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = [path for part in ("gpulint", "rules") for path in (ROOT / part).rglob("*.*") if path.is_file()]
    written = {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}
    wanted = {name if name.startswith("gpulint/") else f"gpulint/{name}" for name in written}
    assert {
        "gpulint/py.typed",
        "gpulint/analysis/models/data/torch.toml",
        "gpulint/rules/__init__.py",
    } <= wanted
    assert wanted <= names
    assert "gpulint/rules" not in names
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"gpulint"}


def test_it_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    assert run(sys.executable, "-m", "venv", "empty", cwd=tmp_path).returncode == 0
    python = tmp_path / "empty/bin/python"
    done = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("no package index within reach")
    assert done.returncode == 0, done.stderr
    (tmp_path / "train.py").write_text(HELD)
    gpulint = tmp_path / "empty/bin/gpulint"
    assert "GPU101" in run(gpulint, "rules", cwd=tmp_path).stdout
    done = run(gpulint, "train.py", "--fail-on", "info", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "[GPU101]" in done.stdout
    assert run(gpulint, "--fix", "train.py", cwd=tmp_path).returncode == 0

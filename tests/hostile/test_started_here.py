"""gpulint is started in the folder of the code that it checks, and runs nothing that lies there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import CLEAN, HELD, environment, run_command

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("gpulint")
RUNS = "import os\nwith open(__file__ + '.ran', 'w'):\n    pass\n"
# Gives the worker processes of a run no chance to be forks.
THREADED = """\
import threading

import gpulint

if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    print(len(gpulint.check_paths(".", jobs=2)))
"""


@pytest.fixture
def shadowed(clone: Path) -> Path:
    """A clone with a module for each name of the standard library and of what gpulint imports, that leaves a trace when it runs."""
    others = ("click", "rich", "libcst", "pathspec", "gpulint", "tomli", "pygls", "lsprotocol", "watchfiles")
    for name in (*sys.stdlib_module_names, *others, "sitecustomize", "usercustomize"):
        (clone / f"{name}.py").write_text(RUNS)
    (clone / "train.py").write_text(HELD)
    return clone


def ran(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.ran"))


def started(command: list[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_command(*command, cwd=cwd, env=environment(), timeout=120, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    "start",
    [
        [COMMAND],
        pytest.param(
            [sys.executable, "-P", "-m", "gpulint"],
            marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="has no -P"),
        ),
        [sys.executable, "-I", "-m", "gpulint"],
    ],
    ids=["gpulint", "python -P -m gpulint", "python -I -m gpulint"],
)
@pytest.mark.parametrize("arguments", ["--no-cache --statistics --fail-on=info .", "server"])
def test_no_way_to_start_runs_what_lies_there(
    shadowed: Path, start: list[str | Path], arguments: str
) -> None:
    done = started([*start, *arguments.split()], shadowed)
    assert ran(shadowed) == [], done.stderr
    assert done.returncode == 1  # findings, and a server without a client
    assert ("GPU101" in done.stdout) == (arguments != "server")


def test_python_m_says_what_it_has_run(clone: Path) -> None:
    """It cannot be kept from it, and says so where it lives to tell."""
    (clone / "train.py").write_text(HELD)
    quiet = started([sys.executable, "-m", "gpulint", "train.py"], clone)
    assert quiet.stderr == ""
    import typing

    (clone / "typing.py").write_text(RUNS + Path(typing.__file__).read_text())
    told = started([sys.executable, "-m", "gpulint", "train.py"], clone)
    if ran(clone):
        assert f"{clone / 'typing.py'} was run in the place of Python's own module typing" in told.stderr


def test_worker_processes_run_nothing_that_lies_there(shadowed: Path, tmp_path: Path) -> None:
    for number in range(40):
        (shadowed / f"many_{number}.py").write_text(HELD + CLEAN * 100)
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool/start.py").write_text(THREADED)
    done = started([sys.executable, tmp_path / "tool/start.py"], shadowed)
    assert done.stdout == "41\n", done.stderr
    assert ran(shadowed) == []


def test_hooks_and_editors_start_what_is_safe() -> None:
    """The command, or a Python that is told not to look there."""
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert set(re.findall(r"entry: (\S+)", hooks)) == {"gpulint"}
    steps = (ROOT / "action.yml").read_text().split("\n    - name: ")
    (installing,) = (step for step in steps if re.search("python.* -m ", step, re.IGNORECASE))
    assert "working-directory: ${{ runner.temp }}" in installing
    extension = (ROOT / "editors/vscode/src/program.ts").read_text()
    assert re.findall(r'args: (\[.*"gpulint".*\])', extension) == ['["-I", "-m", "gpulint", "server"]']
    described = json.loads((ROOT / "editors/vscode/package.json").read_text())
    pages = [json.dumps(described), *(path.read_text() for path in (ROOT / "docs").rglob("*.md"))]
    pages += [path.read_text() for path in (ROOT / "README.md", ROOT / "editors/vscode/README.md")]
    assert not any(re.search(r"(?<!not `)python[\d.]* -m gpulint\b", page) for page in pages)

"""A file is written wholly or not at all, also where there is no room for it."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from support import HELD, environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
ROOM = 1024  # bytes of the largest file that may be written
TRAIN = HELD[HELD.index("def") :].replace("train(", "train_ROW(").replace("loss", "loss_ROW")
MANY = HELD + "".join(TRAIN.replace("ROW", str(row)) for row in range(20))
BASELINE = '{"format": 1, "findings": []}\n'


def without_room(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))

    command = [sys.executable, "-P", "-B", "-m", "gpulint", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment(), capture_output=True, timeout=120, preexec_fn=little
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("--fix .", 1),
        ("--add-ignore .", 2),
        ("--write-baseline .", 2),
        ("--output-file report.json --output-format json .", 2),
        ("--output-file new.json --output-format json .", 2),
        ("codemod oom-guard train.py", 2),
    ],
)
def test_the_old_file_or_the_new_one(clone: Path, command: str, status: int) -> None:
    (clone / "train.py").write_text(MANY)
    (clone / "gpulint-baseline.json").write_text(BASELINE)
    (clone / "report.json").write_text("the last report")
    before = contents(clone)
    done = without_room(*command.split(), cwd=clone)
    assert b"the file would be larger than is allowed" in done.stdout + done.stderr, done
    assert done.returncode == status
    assert contents(clone) == before


def test_a_cache_without_room_costs_time_alone(clone: Path, tmp_path: Path) -> None:
    (clone / "train.py").write_text(MANY)
    for _ in range(2):
        done = without_room("--cache-dir", str(tmp_path / "caches"), "--fail-on=info", ".", cwd=clone)
        assert done.returncode == 1
        assert b"Found 21 findings" in done.stdout
        assert done.stderr == b""
        assert list((tmp_path / "caches").iterdir()) == []

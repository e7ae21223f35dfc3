"""Repositories that mean harm: what lies outside them must be as it was, whatever a test has done to one."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

SECRET = "swordfish = 'of nobody but the user'\n"


def everything(folder: Path) -> dict[str, tuple[int, bytes | str, int]]:
    """What is in a folder: each path with its mode, content (of a link, where it leads) and age."""
    found: dict[str, tuple[int, bytes | str, int]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content: bytes | str = b""
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        elif stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        age = 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns
        found[str(path.relative_to(folder))] = (status.st_mode, content, age)
    return found


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder of the user's beside the clone, with files old enough to be swept, which a test must leave as it is."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in ("secret.py", "passwd", "settings.sh", "entry.json"):
        (folder / name).write_text(SECRET)
        os.utime(folder / name, (0, 0))
    before = everything(folder)
    yield folder
    assert everything(folder) == before


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository that was just cloned."""
    folder = tmp_path / "clone"
    (folder / ".git").mkdir(parents=True)
    return folder

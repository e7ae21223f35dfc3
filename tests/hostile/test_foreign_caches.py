"""A repository may come with anything in the place of a cache: it is not looked at, and one line says so."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support import HELD, HELD_ROW, environment, gpulint

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
TOLD = f"train.py:{HELD_ROW}:9: GPU101".encode()


def run(clone: Path, *options: str | Path) -> subprocess.CompletedProcess[bytes]:
    """A run that must find what is in the repository, and end."""
    done = gpulint(".", "--output-format", "concise", *options, cwd=clone, timeout=60)
    assert TOLD in done.stdout
    return done


@pytest.fixture
def written(clone: Path, tmp_path: Path) -> Path:
    """The one file of the cache of a run over the clone."""
    (clone / "train.py").write_text(HELD)
    run(clone, "--cache-dir", tmp_path / "caches")
    (entry,) = (tmp_path / "caches").iterdir()
    return entry


def hide_everything(entry: Path) -> None:
    """Say of each file that there is nothing in it."""
    data = json.loads(entry.read_text())
    for path, stored in data["entries"].items():
        data["entries"][path] = stored[0] if isinstance(stored, list) else stored
    entry.write_text(json.dumps(data))


@pytest.mark.parametrize("place", ["kept", "deep/kept", "link", "link/kept"])
def test_a_cache_folder_in_the_repository(clone: Path, written: Path, place: str) -> None:
    """Also one that is asked for: entries that hide what there is may have come with it."""
    hide_everything(written)
    (clone / "kept").mkdir(0o700)
    (clone / "link").symlink_to("kept")
    (clone / place).mkdir(0o700, parents=True, exist_ok=True)
    shutil.copy(written, clone / place)
    before = (clone / place / written.name).read_bytes()
    told = run(clone, "--cache-dir", place).stderr.decode()
    assert "lies in the project" in told
    assert told.count("\n") == 1
    assert (clone / place / written.name).read_bytes() == before


def test_a_link_in_the_repository_to_the_users_own_cache(clone: Path, written: Path) -> None:
    (clone / "link").symlink_to(written.parent)
    assert b"lies in the project" in run(clone, "--cache-dir", "link").stderr


def others_may_write(folder: Path) -> None:
    folder.chmod(0o777)


def of_another_user(folder: Path) -> None:
    os.chown(folder, 12345, 12345)


def is_a_link(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.symlink_to("moved")


@pytest.mark.parametrize(
    "change",
    [
        others_may_write,
        is_a_link,
        pytest.param(
            of_another_user, marks=pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
        ),
    ],
)
def test_a_folder_that_is_not_the_users_alone(
    clone: Path, written: Path, change: Callable[[Path], None]
) -> None:
    hide_everything(written)
    folder = written.parent
    change(folder)
    told = run(clone, "--cache-dir", folder).stderr
    assert b"is not used as a cache" in told
    assert told.count(b"\n") == 1
    cleaned = gpulint("clean", "--cache-dir", folder, cwd=clone, status=2)
    assert b"is not used as a cache" in cleaned.stderr


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_an_entry_that_is_no_file(clone: Path, written: Path, outside: Path, kind: str) -> None:
    """Neither read, nor written through, nor waited for."""
    written.unlink()
    if kind == "pipe":
        os.mkfifo(written)
    elif kind == "folder":
        written.mkdir()
    else:
        written.symlink_to(outside / ("entry.json" if kind == "link" else "made"))
    for _ in range(2):
        run(clone, "--cache-dir", written.parent)
    gpulint("clean", "--cache-dir", written.parent, cwd=clone)


def test_only_the_caches_own_files_are_swept_or_taken_away(clone: Path, written: Path, outside: Path) -> None:
    own = f"{'0' * 24}-{'1' * 24}.json"
    died = f"{own}.{'2' * 12}"
    names = ("notes.txt", "0.json", f"{own}.txt")
    for name in (*names, own, died):
        (written.parent / name).write_text("{}")
        os.utime(written.parent / name, (0, 0))
    (written.parent / f"{'2' * 24}-{'3' * 24}.json").symlink_to(outside / "entry.json")
    written.unlink()
    run(clone, "--cache-dir", written.parent)
    assert not {own, died} & {*os.listdir(written.parent)}
    gpulint("clean", "--cache-dir", written.parent, cwd=clone)
    assert sorted(os.listdir(written.parent)) == sorted(names)


def test_the_users_folder_is_made_for_the_user_alone(clone: Path, tmp_path: Path) -> None:
    (clone / "train.py").write_text(HELD)
    env = environment(GPULINT_CACHE_DIR=None, XDG_CACHE_HOME=str(tmp_path / "users"))
    old = os.umask(0)
    try:
        assert gpulint(".", "--fail-on=info", cwd=clone, env=env).returncode == 1
    finally:
        os.umask(old)
    assert (tmp_path / "users/gpulint").stat().st_mode & 0o777 == 0o700
    (entry,) = (tmp_path / "users/gpulint").iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600

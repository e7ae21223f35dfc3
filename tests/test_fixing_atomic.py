import contextlib
import errno
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm
from support import HELD, run_command

from gpulint.atomic import write_atomic

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


@posix
@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root gives files away")
def test_owner_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    write_atomic(str(path), b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@posix
@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may write anything")
def test_a_protected_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="unchanged"):
        write_atomic(str(path), b"new")
    assert path.read_bytes() == b"old"


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="the file is unchanged"):
        write_atomic(str(tmp_path / "no" / "file.py"), b"x")


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_or_an_interruption_leaves_no_trace(
    call: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(error)) as caught:
        write_atomic(str(path), b"new")
    monkeypatch.undo()
    if isinstance(error, OSError):
        assert caught.value.errno == errno.ENOSPC
        assert "no space is left on the disk; the file is unchanged" in str(caught.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.py"]


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 100 + ".py")
    write_atomic(str(path), b"new")
    assert os.listdir(tmp_path) == [path.name]


@posix
@pytest.mark.slow
def test_fix_killed_at_any_moment(tmp_path: Path) -> None:
    """Every file is the old or the new one with its mode, and one more run fixes the rest."""
    wanted = int(os.environ.get("GPULINT_TEST_KILLS", "12"))
    folder = tmp_path / "code"
    modes = {f"train_{number}.py": 0o640 | (number % 2) * 0o111 for number in range(12)}
    options = f"-m gpulint --fix --isolated --jobs 1 --cache-dir {tmp_path / 'cache'}"
    command = [sys.executable, *options.split()]

    def reset() -> None:
        folder.mkdir(exist_ok=True)
        for name, mode in modes.items():
            (folder / name).write_text(HELD)
            (folder / name).chmod(mode)

    reset()
    warm.run_linter([*command, str(folder)], capture_output=True, timeout=120)
    fixed = (folder / "train_0.py").read_text()
    assert fixed != HELD
    kills = stopped = 0
    chance = random.Random(12)
    while kills < wanted or not stopped:
        kills += 1
        reset()
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        run = warm.LinterPopen(
            [*command, str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        reached = folder / f"train_{chance.randrange(11)}.py"  # once this one is written, or any moment after
        while run.poll() is None and reached.stat().st_size == len(HELD):
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.05))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        texts = {name: (folder / name).read_text() for name in modes}
        assert set(texts.values()) <= {HELD, fixed}
        assert {name: stat.S_IMODE((folder / name).stat().st_mode) for name in modes} == modes
        stopped += HELD in texts.values()
    print(f"{kills} kills, {stopped} of them before the end")
    assert stopped
    warm.run_linter([*command, str(folder)], capture_output=True, timeout=120)
    assert {(folder / name).read_text() for name in modes} == {fixed}


@posix
@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may write anywhere")
def test_fix_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(HELD)
    tmp_path.chmod(0o555)
    try:
        done = run_command(
            sys.executable, "-m", "gpulint", "--fix", "--isolated", "--no-cache", path, timeout=120
        )
    finally:
        tmp_path.chmod(0o755)
    assert done.returncode != 0
    assert "a new file cannot be made in its directory; the file is unchanged" in done.stdout
    assert path.read_text() == HELD

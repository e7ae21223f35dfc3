from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import warm

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


FULL = """
    import errno, resource, signal, sys
    from gpulint.atomic import write_atomic
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    try:
        write_atomic(sys.argv[1], b"n" * 1_000_000)
    except OSError as error:
        print(errno.errorcode[error.errno], error.strerror)
"""


@posix
def test_no_room_for_the_new_file(tmp_path: Path) -> None:
    """The kernel stops the write in the middle, as a full disk does."""
    path = tmp_path / "file.py"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", textwrap.dedent(FULL), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "EFBIG the file would be larger than is allowed; the file is unchanged\n", (
        done.stderr
    )
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.py"]


WRITER = """
    import sys
    from gpulint.atomic import write_atomic
    print("ready", flush=True)
    turn = 0
    while True:
        turn += 1
        write_atomic(sys.argv[1], bytes([97 + turn % 26]) * 300_000)
"""


@posix
def test_killed_at_any_moment_the_file_is_old_or_new(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(b"a" * 300_000)
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    seen = set()
    for turn in range(25):
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(0.003 + 0.0011 * turn)
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
        content = path.read_bytes()
        assert len(content) == 300_000
        assert len(set(content)) == 1
        seen.add(content[0])
    assert len(seen) > 1  # the writer did write


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 100 + ".py")
    write_atomic(str(path), b"new")
    assert os.listdir(tmp_path) == [path.name]


FIXABLE = """import torch


def train(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    print(float(total))
"""


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
            (folder / name).write_text(FIXABLE)
            (folder / name).chmod(mode)

    reset()
    warm.run_linter([*command, str(folder)], capture_output=True, timeout=120)
    fixed = (folder / "train_0.py").read_text()
    assert fixed != FIXABLE
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
        while run.poll() is None and reached.stat().st_size == len(FIXABLE):
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.05))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        texts = {name: (folder / name).read_text() for name in modes}
        assert set(texts.values()) <= {FIXABLE, fixed}
        assert {name: stat.S_IMODE((folder / name).stat().st_mode) for name in modes} == modes
        stopped += FIXABLE in texts.values()
    print(f"{kills} kills, {stopped} of them before the end")
    assert stopped
    warm.run_linter([*command, str(folder)], capture_output=True, timeout=120)
    assert {(folder / name).read_text() for name in modes} == {fixed}


@posix
@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may write anywhere")
def test_fix_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(FIXABLE)
    tmp_path.chmod(0o555)
    try:
        command = [sys.executable, "-m", "gpulint", "--fix", "--isolated", "--no-cache", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    finally:
        tmp_path.chmod(0o755)
    assert done.returncode != 0
    assert "a new file cannot be made in its directory; the file is unchanged" in done.stdout
    assert path.read_text() == FIXABLE

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gpulint.atomic import write_atomic

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def test_content_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(b"old")
    path.chmod(0o741)
    write_atomic(str(path), b"new\r\n\x00\xff")
    assert path.read_bytes() == b"new\r\n\x00\xff"
    assert stat.S_IMODE(path.stat().st_mode) == 0o741
    assert os.listdir(tmp_path) == ["file.py"]


def test_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    usual, made = tmp_path / "usual", tmp_path / "made"
    usual.write_bytes(b"")
    write_atomic(str(made), b"x")
    assert made.stat().st_mode == usual.stat().st_mode


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomic("file.py", b"x")
    assert (tmp_path / "file.py").read_bytes() == b"x"


@posix
def test_symbolic_links_stay(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "file.py").write_bytes(b"old")
    (tmp_path / "between").symlink_to("real/file.py")
    (tmp_path / "link.py").symlink_to("between")
    write_atomic(str(tmp_path / "link.py"), b"new")
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "between").is_symlink()
    assert (real / "file.py").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["between", "link.py", "real"]


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
def test_a_failure_leaves_no_trace(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="no space is left on the disk; the file is unchanged") as caught:
        write_atomic(str(path), b"new")
    monkeypatch.undo()
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.py"]


@posix
def test_interruption_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(b"old")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(str(path), b"new")
    monkeypatch.undo()
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

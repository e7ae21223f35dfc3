"""`gpulint check --watch`, as a process that files are changed under."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import CLEAN, HELD, environment, gpulint
from test_notebook_checking import LOOP, SETUP, save

from gpulint.cli._watch import by_notices, changes

WITHOUT_NOTICES = (
    "import sys; sys.modules['watchfiles'] = None; from gpulint.cli import main; sys.exit(main())"
)
WITH_NOTICES = "import sys; from gpulint.cli import main; sys.exit(main())"


class Watching:
    """A running `--watch` and what it has written so far."""

    def __init__(self, folder: Path, *arguments: str, program: str = WITHOUT_NOTICES) -> None:
        command = [sys.executable, "-c", program, *"check --watch --output-format concise".split()]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(
            [*command, *arguments], cwd=folder, env=environment(), bufsize=0, **streams
        )
        self._text = ""
        self._seen = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while piece := os.read(self.process.stdout.fileno(), 4096):
            self._text += piece.decode()

    def next(self, timeout: float = 30) -> str:
        """What has been written since the last call, up to the next wait for changes."""
        end = "watching for changes, Ctrl-C stops\n"
        deadline = time.monotonic() + timeout
        while end not in self._text[self._seen :]:
            assert time.monotonic() < deadline, self._text
            assert self.process.poll() is None, self._text
            time.sleep(0.02)
        start, self._seen = self._seen, self._text.index(end, self._seen) + len(end)
        return self._text[start : self._seen]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(20)

    def __enter__(self) -> "Watching":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(params=[WITHOUT_NOTICES, WITH_NOTICES], ids=["by the clock", "by notices"])
def watching(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watching]:
    if request.param == WITH_NOTICES:
        pytest.importorskip("watchfiles")
    (tmp_path / "train.py").write_text(CLEAN)
    (tmp_path / "other.py").write_text(CLEAN)
    with Watching(tmp_path, program=request.param) as started:
        yield started


def test_it_follows_changes(watching: Watching, tmp_path: Path) -> None:
    first = watching.next()
    assert "No findings in 2 files" in first
    (tmp_path / "train.py").write_text(HELD)
    changed = watching.next()
    assert changed.startswith("gpulint: train.py changed\n")
    assert "train.py:11:9: GPU101" in changed
    save(tmp_path / "new.ipynb", SETUP, LOOP)
    assert "new.ipynb:cell 3:7:5: GPU101" in watching.next()
    (tmp_path / "new.ipynb").unlink()
    gone = watching.next()
    assert "new.ipynb changed" in gone
    assert "new.ipynb:" not in gone
    assert "train.py:11:9" in gone
    (tmp_path / "gpulint.toml").write_text('ignore = ["GPU101"]\n')
    assert "No findings in 2 files" in watching.next()
    (tmp_path / "gpulint.toml").write_text('ignore = ["gpu"]\n')
    wrong = watching.next()
    assert "gpulint: gpulint.toml: ignore: " in wrong
    (tmp_path / "gpulint.toml").unlink()
    assert "train.py:11:9" in watching.next()
    (tmp_path / "train.py").write_text("def (")
    assert "GPU000" in watching.next()
    assert watching.stop() == 130


@pytest.mark.parametrize("configured", [True, False], ids=["in the configuration", "as an option"])
def test_a_baseline_that_changes(tmp_path: Path, configured: bool) -> None:
    (tmp_path / "train.py").write_text(HELD)
    assert gpulint("--write-baseline", ".", cwd=tmp_path).returncode == 0
    written = (tmp_path / "gpulint-baseline.json").read_text()
    if configured:
        (tmp_path / "gpulint.toml").write_text('baseline = "gpulint-baseline.json"\n')
    with Watching(tmp_path, *(() if configured else ("--baseline", "gpulint-baseline.json"))) as watching:
        assert "1 finding accepted by the baseline" in watching.next()
        (tmp_path / "gpulint-baseline.json").write_text(written.replace("GPU101", "GPU102"))
        changed = watching.next()
        assert changed.startswith("gpulint: gpulint-baseline.json changed\n")
        assert "train.py:11:9: GPU101" in changed


def test_what_it_writes_itself_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HELD)
    with Watching(tmp_path, "--fix") as watching:
        assert "Fixed 1 finding" in watching.next()
        (tmp_path / "b.py").write_text(CLEAN)
        later = watching.next()
        assert later.startswith("gpulint: b.py changed\n")
        assert watching.stop() == 130


RETURNS = "def total_of(loss):\n    return {}\n"


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("helper.py", RETURNS.format("float(loss)"), RETURNS.format("loss * 2")),
        ("sub/base.toml", 'ignore = ["GPU101"]\n', ""),
    ],
)
def test_what_findings_rest_on_is_followed(tmp_path: Path, name: str, before: str, after: str) -> None:
    source = HELD.replace("import torch\n", "import torch\nfrom helper import total_of\n", 1)
    (tmp_path / "train.py").write_text(source.replace("total += loss", "total += total_of(loss)"))
    (tmp_path / "helper.py").write_text(RETURNS.format("loss * 2"))
    (tmp_path / "gpulint.toml").write_text('extend = "sub/base.toml"\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "base.toml").write_text("")
    (tmp_path / name).write_text(before)
    with Watching(tmp_path, "train.py") as watching:
        assert "No findings" in watching.next()
        (tmp_path / name).write_text(after)
        assert "GPU101" in watching.next()


def test_the_screen_is_cleared_on_a_terminal_only(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CLEAN)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", WITHOUT_NOTICES, "check", "--watch"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=theirs, stderr=theirs)
    try:
        shown = _until(ours, b"Ctrl-C stops")
        assert shown.startswith(b"\x1b[2J")
        (tmp_path / "train.py").write_text(HELD)
        shown = _until(ours, b"Ctrl-C stops")
        assert b"\x1b[2J" in shown
        assert shown.index(b"\x1b[2J") < shown.index(b"train.py changed") < shown.index(b"GPU101")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    finally:
        process.kill()


def _until(terminal: int, end: bytes) -> bytes:
    shown = b""
    deadline = time.monotonic() + 30
    while end not in shown:
        assert time.monotonic() < deadline, shown
        shown += os.read(terminal, 4096)
    return shown


@pytest.mark.parametrize("arguments", [("-",), ("--add-ignore",), ("--write-baseline",)])
def test_what_cannot_be_watched(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = gpulint("--watch", *arguments, cwd=tmp_path, status=2)
    assert b"--watch goes with paths" in done.stderr


def test_changes_names_what_came_went_and_differs() -> None:
    before = {"a": (1, 1, 1), "b": (1, 1, 1), "c": None, "d": (1, 1, 1)}
    after = {"a": (1, 1, 1), "b": (2, 1, 1), "c": (1, 1, 1), "e": (1, 1, 1), "f": None}
    assert changes(before, after) == ["b", "c", "d", "e"]


def test_without_watchfiles_there_are_no_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    assert by_notices(["."]) is None

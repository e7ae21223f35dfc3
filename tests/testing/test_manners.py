"""The plugin beside pytest itself: old ones, a name twice, frames that wait; its markers and options, and what is said where they are
wrong. Without torch, but for one suite."""

import os
import runpy
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest
import warm
from needs import needs_torch
from support import run_command

from gpulint.memory.errors import empty_frames
from gpulint.testing import running
from gpulint.testing.asking import Limits, Misuse, allowed_by, matches, read
from gpulint.testing.baselines import compared
from gpulint.testing.telling import Peaks, Telling


def test_what_is_registered_can_be_hashed() -> None:
    """pytest before 9 keeps its plugins in a set."""
    assert hash(Telling(Namespace(), Peaks("", 1.0, {})))


def test_the_plugin_may_be_named_by_everybody(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["gpulint.pytest_plugin"]')
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    by_itself = ("-p", "gpulint.testing.autoload")
    named = ("-p", "gpulint.pytest_plugin")
    for plugins in ((*named, *by_itself), by_itself):
        command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", *plugins, "--markers"]
        env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = run_command(*command, cwd=tmp_path, env=env, status=0)
        assert done.stdout.count("@pytest.mark.gpu_memory(") == 1


def test_a_pytest_that_is_too_old_runs_without_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(Path(running.__file__).with_name("autoload.py"))
    assert runpy.run_path(path)["pytest_plugins"] == ("gpulint.pytest_plugin",)
    monkeypatch.delattr(pytest, "StashKey")
    found = runpy.run_path(path)
    assert "pytest_plugins" not in found
    assert "needs pytest 7.4" in found["pytest_report_header"]()


def test_a_generator_that_waits_goes_on_after_its_exception_was_cleared() -> None:
    """A fixture of the session that hands out what it caught is not torn down because a test raised it."""
    ended = []

    def fixture() -> Iterator[object]:
        try:
            try:
                raise ConnectionError
            except ConnectionError as error:
                caught = error
            yield caught
            yield "goes on"
        finally:
            ended.append(True)

    waiting = fixture()
    error = next(waiting)
    assert isinstance(error, ConnectionError)
    empty_frames(error)
    assert not ended
    assert next(waiting) == "goes on"
    assert next(waiting, None) is None
    empty_frames(error)


def test_of_several_attempts_the_last_counts() -> None:
    peaks = Peaks("memory.json", 1.0, {})
    for now in (900, 500):
        held = compared(now, 500, 1.0).to_json()
        peaks.take({"nodeid": "test_it.py::test_it", "held": held})
    assert [one and one.status for one in peaks.held.values()] == ["within"]


SUITE = """
import pytest
import torch
from torch import nn

torch.manual_seed(0)
KEPT = []

def training(keep):
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in range(16):
        loss = model(torch.randn(8, 64)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if keep:
            history.append(loss)
    assert len(history) == (16 if keep else 0)

@pytest.mark.gpu_memory(max_drift="0B", steps=10)
def test_clean_training():
    training(keep=False)

@pytest.mark.gpu_memory(max_drift="0B", steps=10)
def test_leaking_training():
    training(keep=True)

@pytest.mark.gpu_memory(max_drift="1KiB", steps=10)
def test_leak_that_is_allowed():
    training(keep=True)

def test_fixture(gpu_memory):
    mine = []
    for number in gpu_memory.steps(14):
        mine.append(torch.ones(256) * number)
    assert gpu_memory.drift == 1024
    with pytest.raises(pytest.fail.Exception, match="mine"):
        gpu_memory.assert_no_drift()
    gpu_memory.assert_no_drift("2KiB")

@pytest.mark.gpu_memory(steps=10)
def test_that_fails_by_itself():
    assert 1 == 2

@pytest.fixture
def late(request):
    request.node.add_marker(pytest.mark.gpu_memory(max_peak=1))

def test_late(late):
    torch.zeros(1000)

@pytest.fixture
def wrong(request):
    request.node.add_marker(pytest.mark.gpu_memory(max_peek=1))

def test_wrong(wrong):
    torch.zeros(1000)

def test_asks_within(request):
    assert request.getfixturevalue("gpu_memory").peak

@pytest.fixture
def before_the_call(gpu_memory):
    gpu_memory.peak

def test_asks_before(before_the_call):
    pass

def test_drifts(gpu_memory):
    for _ in gpu_memory.steps(12):
        KEPT.append(torch.zeros(1000))
    gpu_memory.assert_no_drift()

@pytest.mark.gpu_memory(max_peak="1GiB")
@pytest.mark.skipif(True, reason="by its own reason")
def test_skipped():
    pass
"""


def test_collection_does_not_import_torch(tmp_path: Path) -> None:
    code = "import sys, gpulint.pytest_plugin; raise SystemExit('torch' in sys.modules or 'libcst' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0


@needs_torch
def test_what_drifts_is_told_and_what_cannot_be_measured_is_never_green(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SUITE)
    command = "-m pytest -q -rs -p no:cacheprovider -p gpulint.pytest_plugin".split()
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = run_command(sys.executable, *command, cwd=tmp_path, env=env)
    assert "6 failed, 3 passed, 1 skipped, 1 error in" in done.stdout, done.stdout
    assert "assert 1 == 2" in done.stdout
    assert "list `history` in `training()`" in done.stdout
    assert "512 B a step stay on the GPU, 0 B are allowed" in done.stdout
    assert "the marker came while fixtures were set up, too late for a peak" in done.stdout
    assert "test_wrong: gpu_memory: unknown keyword 'max_peek'" in done.stdout
    assert done.stdout.count("the test has to ask for the fixture by name") >= 2
    assert "a step born in test_drifts, test_it.py:" in done.stdout
    assert "by its own reason" in done.stdout
    assert "running.py" not in done.stdout  # no traceback of ours


# -- markers and options -------------------------------------------------------------------------------------


def limits_of(**keywords: object) -> Limits:
    return read(pytest.mark.gpu_memory(**keywords).mark)


def test_limits() -> None:
    assert limits_of() == Limits()
    assert limits_of(max_peak="2GiB") == Limits(max_peak=2 * 1024**3, watches_steps=False)
    assert limits_of(max_peak=10, steps=8) == Limits(max_peak=10, steps=8, watches_steps=True)
    assert limits_of(max_drift="1KiB", device="cpu") == Limits(1024, device="cpu")


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"max_peek": 1}, "unknown keyword 'max_peek' (did you mean 'max_peak'?)"),
        ({"limit": 3}, "unknown keyword 'limit'; it takes max_drift"),
        ({"max_peak": "lots"}, "max_peak: 'lots' is not a size"),
        ({"max_peak": 1.5}, "max_peak must be a size such as '512MiB'"),
        ({"max_peak": -1}, "max_peak must be a size"),
        ({"max_drift": None}, "max_drift must be a size"),
        ({"steps": 2}, "steps must be a number of at least 5, and is 2"),
        ({"steps": True}, "steps must be a number"),
        ({"warmup": "x"}, "warmup must be a number of steps"),
        ({"device": "tpu"}, "device must be one of auto, cuda, cpu, and is 'tpu'"),
    ],
)
def test_wrong_limits(keywords: dict[str, object], said: str) -> None:
    with pytest.raises(Misuse) as error:
        limits_of(**keywords)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_other_markers() -> None:
    allow = pytest.mark.gpu_memory_allow_leak
    assert read(allow("a cache", max="1MiB").mark) == read(allow(reason="a cache", max=1024**2).mark)
    assert read(pytest.mark.gpu_no_sync(allowed=2).mark) == 2
    for wrong in allow(), allow(" "), allow("a", "b"):
        with pytest.raises(Misuse, match="gpu_memory_allow_leak"):
            read(wrong.mark)
    with pytest.raises(Misuse, match="keywords only"):
        read(pytest.mark.gpu_no_sync(3).mark)


def test_patterns_of_node_ids_know_no_brackets() -> None:
    assert not matches("tests/test_a.py::test_x[[]cpu*", "tests/test_a.py::test_x[cpu-1]")
    assert matches("tests/test_a.py::test_x[cpu-*]", "tests/test_a.py::test_x[cpu-1]")
    assert not matches("tests/test_a.py::test_x[cpu-*]", "tests/test_a.py::test_x[gpu-1]")
    assert matches("*::test_y", "any/where.py::test_y")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("tests/*", ("tests/*", None)),
        ("tests/test_a.py::test_x[1 2]", ("tests/test_a.py::test_x[1 2]", None)),
        (" tests/test_a.py::test_x[1 2] 64MiB ", ("tests/test_a.py::test_x[1 2]", 64 * 1024**2)),
        ("tests/* 1.5 GiB", ("tests/*", 3 * 512 * 1024**2)),
        ("tests/* 512", ("tests/*", 512)),
    ],
)
def test_a_size_stands_behind_the_pattern(line: str, meant: tuple[str, int | None]) -> None:
    assert allowed_by(line) == meant


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return warm.run_torch([*command, *options], cwd=folder, capture_output=True, text=True, timeout=120)


def test_wrong_markers_are_told_at_collection(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        """
import pytest

@pytest.mark.gpu_memory(limit=3)
def test_first():
    pass

class TestIt:
    @pytest.mark.parametrize("number", [1, 2])
    @pytest.mark.gpu_no_sync(allowed="some")
    def test_second(self, number):
        pass
"""
    )
    for options in ([], ["-n", "2"]):
        done = run_pytest(tmp_path, *options)
        assert done.returncode != 0
        assert "Traceback" not in done.stdout + done.stderr
        assert "test_it.py:4: @pytest.mark.gpu_memory: unknown keyword 'limit'" in done.stdout
    (tmp_path / "test_it.py").write_text((tmp_path / "test_it.py").read_text().replace("(limit=3)", "()"))
    done = run_pytest(tmp_path)
    assert "test_it.py:9: @pytest.mark.gpu_no_sync: allowed must be a number" in done.stdout
    assert done.stdout.count("allowed must be") <= 2  # once where it is told, once in pytest's summary


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--gpu-memory-leaks=maybe"], "'maybe' is neither report nor error"),
        (["--gpu-memory-leaks", "tests"], "before a path write --gpu-memory-leaks=report"),
        (["--gpu-memory-leaks-above", "lots"], "'lots' is not a size"),
        (["--gpu-memory-tolerance", "-3"], "'-3' is no percentage"),
        (["--gpu-memory-write-baseline"], "needs --gpu-memory-baseline FILE"),
        (["--gpu-memory-all"], "needs --gpu-memory-baseline FILE"),
        (["--gpu-memory-device", "tpu"], "invalid choice: 'tpu'"),
        (["-o", "gpu_memory_allow_leaks=a.py::* 10Mx"], "'10Mx' is not a size"),
    ],
)
def test_wrong_options_are_told_in_four_lines(tmp_path: Path, options: list[str], said: str) -> None:
    done = run_pytest(tmp_path, *options)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 5, done.stderr

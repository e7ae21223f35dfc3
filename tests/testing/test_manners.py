"""How the plugin behaves beside pytest itself: old ones, a name twice, frames that wait. Without torch, but for the last."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpulint.memory.errors import empty_frames
from gpulint.testing import running
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
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--strict-markers", *plugins, "--markers"],
            cwd=tmp_path,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
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
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=tmp_path).returncode == 0


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_what_drifts_is_told_and_what_cannot_be_measured_is_never_green(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, *"-m pytest -q -rs -p no:cacheprovider -p gpulint.pytest_plugin".split()],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
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

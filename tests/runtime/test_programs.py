"""Every leak is found and its holder named; no benign program raises an alarm. On the CPU, and on CUDA where
there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpulint.runtime.parent.runner import Run, run
from gpulint.runtime.record.result import RankResult, RunResult

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))
from expectations import BENIGN, LEAKS, check_benign, check_leak, reason_to_skip  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def measured(request):
    """Runs the collected programs, two at a time, and hands out their results by path."""
    wanted = {
        item.callspec.params["path"] for item in request.session.items if "measured" in item.fixturenames
    }
    paths = [str(path) for path in sorted(wanted) if reason_to_skip(path) is None]
    zygote = str(Path(__file__).parent / "zygote.py")
    process = subprocess.Popen(
        [sys.executable, zygote, DEVICE, "2", *paths],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | ENVIRONMENT,
    )
    done: dict[str, RunResult] = {}

    def result_of(path: Path) -> RunResult:
        assert process.stdout is not None
        while str(path) not in done:
            line = process.stdout.readline()
            assert line, f"the zygote ended before {path.name} was run"
            said = json.loads(line)
            assert said["result"] is not None, said["log"]
            rank = RankResult.from_json(said["result"])
            done[said["path"]] = RunResult((), rank.end, 0.0, (rank,), stderr=said["log"])
        return done[str(path)]

    yield result_of
    process.kill()
    process.wait()


@pytest.mark.parametrize("path", LEAKS, ids=lambda path: path.stem)
def test_leak(path, measured):
    reason = reason_to_skip(path)
    if reason is not None:
        pytest.skip(reason)
    check_leak(path, measured(path), DEVICE)


@pytest.mark.parametrize("path", BENIGN, ids=lambda path: path.stem)
def test_benign(path, measured):
    reason = reason_to_skip(path)
    if reason is not None:
        pytest.skip(reason)
    check_benign(path, measured(path), DEVICE)


def test_leak_as_a_user_runs_it():
    (path,) = (path for path in LEAKS if path.stem == "loss_held_after_backward")
    check_leak(path, run(Run(str(path), capture=True, timeout=120.0, environment=ENVIRONMENT)), DEVICE)


def test_benign_as_a_user_runs_it():
    (path,) = (path for path in BENIGN if path.stem == "loader_workers_spawn")
    check_benign(path, run(Run(str(path), capture=True, timeout=120.0, environment=ENVIRONMENT)), DEVICE)

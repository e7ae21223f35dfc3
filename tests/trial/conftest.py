"""Runs of trials start in forks of a process that has imported torch."""

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpulint.runtime.parent.runner import Run, run
from gpulint.runtime.record.result import RunResult
from gpulint.trial.trying import Execute

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

if find_spec("torch") is None:
    collect_ignore = ["test_planted.py", "test_trying.py", "test_fixtures_run.py"]


@pytest.fixture
def execute(warm_scripts: None, monkeypatch: pytest.MonkeyPatch) -> Execute:
    """What `try_fixes` runs programs by."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def execute(what: Run, label: str) -> RunResult:
        return run(replace(what, timeout=what.timeout or 120.0))

    return execute

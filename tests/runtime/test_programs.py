"""Every leak is found and its holder named; no benign program raises an alarm. On the CPU, and on CUDA where
there is one."""

from __future__ import annotations

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from gpulint.runtime.result import RunResult
from gpulint.runtime.runner import Run, run

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))
from expectations import BENIGN, LEAKS, check_benign, check_leak, reason_to_skip  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def measured(request):
    """Runs the collected programs two at a time, and hands out their results."""
    wanted = {
        item.callspec.params["path"] for item in request.session.items if "measured" in item.fixturenames
    }
    pool = ThreadPoolExecutor(2)
    futures: dict[Path, Future[RunResult]] = {}
    for path in [*LEAKS, *BENIGN]:
        if path in wanted and reason_to_skip(path) is None:
            environment = {"OMP_NUM_THREADS": "1"}
            futures[path] = pool.submit(
                run, Run(str(path), capture=True, timeout=120.0, environment=environment)
            )
    yield lambda path: futures[path].result()
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("path", LEAKS, ids=lambda path: path.stem)
def test_leak(path, measured):
    check_leak(path, measured(path), DEVICE)


@pytest.mark.parametrize("path", BENIGN, ids=lambda path: path.stem)
def test_benign(path, measured):
    reason = reason_to_skip(path)
    if reason is not None:
        pytest.skip(reason)
    check_benign(path, measured(path), DEVICE)

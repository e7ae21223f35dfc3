"""What tests of all folders share."""

from __future__ import annotations

import signal

import pytest
import warm

# Of what is started in the background (`make test &`) Ctrl-C is ignored, and all that it starts would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# With the longest at the end one of two workers would wait for the other.
LONGEST = (
    "test_workers_tried.py",
    "test_fixtures_tried.py",
    "test_safe_fixes.py",
    "test_torchrun.py",
    "test_site.py",
    "test_suites.py",
    "test_notebook_kernel.py",
    "test_gate_runs.py",
    "test_placing.py",
    "test_recording.py",
    "test_against_a_gpu.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture
def warm_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier starts scripts in forks of a process that has imported torch."""
    warm.start_scripts_warm(monkeypatch.setattr)

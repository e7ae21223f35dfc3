"""What tests of all folders share."""

from __future__ import annotations

import gc
import signal

import pytest
import warm

# Of what is started in the background (`make test &`) Ctrl-C is ignored, and all that it starts would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# In this order, before all others: with one of them at the end one of two workers would wait for the other.
# One of the first two measures times, and the other takes one core alone.
LONGEST = (
    "test_fixtures_tried.py",
    "test_fixtures_verified.py",
    "test_safe_fixes.py",
    "test_workers_tried.py",
    "test_site.py",
    "test_suites.py",
    "test_torchrun.py",
    "test_cli_check.py",
    "test_answers.py",
    "test_operator_run.py",
    "test_programs.py",
    "test_trying.py",
    "test_notebook_kernel.py",
    "test_gate_runs.py",
    "test_workers.py",
    "test_watch.py",
    "test_command.py",
    "test_server_actions.py",
    "test_verify_cli.py",
    "test_codemods.py",
    "test_fixtures.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """pytest-xdist would begin with the files of many tests, and the few long ones would come last."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))


def pytest_collection_finish() -> None:
    """Thousands of tests, and torch: what is there now stays, and the many tests that collect garbage need not look through
    it each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def warm_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier starts scripts in forks of a process that has imported torch."""
    warm.start_scripts_warm(monkeypatch.setattr)

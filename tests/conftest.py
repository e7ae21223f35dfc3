"""What tests of all folders share."""

import asyncio
import gc
import inspect
import os
import re
import shutil
import signal
import tempfile
from typing import Any

import pytest
import warm

# Of what is started in the background (`make test &`) Ctrl-C is ignored, and all that it starts would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# In this order, before all others: with one of them at the end one of two workers would wait for the other.
# The first measures times.
LONGEST = (
    "test_fixtures_run.py",
    "test_safe_fixes.py",
    "test_workers_tried.py",
    "test_site.py",
    "test_suites.py",
    "test_torchrun.py",
    "test_operator_run.py",
    "test_kit_frameworks.py",
    "test_cli_check.py",
    "test_programs.py",
    "test_trying.py",
    "test_verify_windows.py",
    "test_runner.py",
    "test_action.py",
    "test_hooks.py",
    "test_wheel.py",
)
# The cases of a question are looked into once, by one worker: for their findings and fixes.
OF_A_QUESTION = re.compile(r"(?:test_(?:cases|selection_alone)\.py::|::test_programs_)\w+\[(\w+)")


# What the command remembers of the programs of tests is nothing for the cache of whoever runs them.
CACHE = tempfile.mkdtemp(prefix="gpulint-tests-cache-")


def pytest_unconfigure() -> None:
    shutil.rmtree(CACHE, ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    """pytest-xdist would begin with the files of many tests, and the few long ones would come last."""
    os.environ["GPULINT_CACHE_DIR"] = CACHE
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile`, and the cases by question."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrQuestion(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            question = OF_A_QUESTION.search(nodeid)
            return question[1] if question is not None else super()._split_scope(nodeid)

    return ByFileOrQuestion(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))


def pytest_collection_finish() -> None:
    """Thousands of tests, and torch: what is there now stays, and the many tests that collect garbage need not look through
    it each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine is run to its end; one that waits for what never comes fails, and holds nobody up."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**given), 120))
    return True


@pytest.fixture
def warm_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier starts scripts in forks of a process that has imported torch."""
    warm.start_scripts_warm(monkeypatch.setattr)

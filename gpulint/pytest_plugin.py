"""pytest plugin: limits on a test's GPU memory, committed peaks, and what tests leave behind, with who holds it.

Mark a test, or take the fixture `gpu_memory` and ask it yourself:

    @pytest.mark.gpu_memory(max_drift="0B", steps=20)
    def test_training_keeps_nothing():
        train(model, loader)

    @pytest.mark.gpu_memory(max_peak="2GiB")
    def test_training_fits():
        train(model, loader)

    def test_step(gpu_memory):
        for batch in gpu_memory.steps(batches):
            trainer.step(batch)
        gpu_memory.assert_no_drift()

For a whole suite: `pytest --gpu-memory-leaks`, and `--gpu-memory-baseline FILE`. All of it is told in docs/pytest.md.
Nothing here imports torch before a test asks for it. Without CUDA live tensors are tracked on the CPU.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from gpulint.testing import asking
from gpulint.testing.baselines import BadBaseline
from gpulint.testing.running import NO_TORCH, Running, no_cuda
from gpulint.testing.telling import OUTPUT, Telling, open_peaks

if TYPE_CHECKING:
    from gpulint.testing.steps import GpuMemory

_RUNNING: pytest.StashKey[Running] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    asking.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    for line in asking.DESCRIPTIONS:
        config.addinivalue_line("markers", line)
    option = config.option
    asking.check_options(config)
    # What was asked for on the command line has to be here: no run is green because nothing was looked at
    on_gpu = option.gpu_memory_device == "cuda"
    if (option.gpu_memory_leaks or option.gpu_memory_baseline or on_gpu) and find_spec("torch") is None:
        raise pytest.UsageError(NO_TORCH)
    if on_gpu and (why := no_cuda()):
        raise pytest.UsageError(f"--gpu-memory-device=cuda asks for a GPU, and {why}")
    path = option.gpu_memory_baseline and str(config.invocation_params.dir / option.gpu_memory_baseline)
    try:
        peaks = open_peaks(path, option.gpu_memory_write_baseline, option.gpu_memory_tolerance)
    except BadBaseline as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[_RUNNING] = Running(config, peaks)
    config.pluginmanager.register(config.stash[_RUNNING], "gpulint-running")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Telling(option, peaks), "gpulint-telling")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    report = yield
    if report.passed:
        asking.check(report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand on what this process found out: to the process that started it, or to the one that tells it, which may be this."""
    running = session.config.stash.get(_RUNNING, None)
    if running is None:
        return
    message = {
        "leftovers": [one.to_json() for one in running.leftovers],
        "looked_at": running.looked_at,
        "where": running.where,
    }
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[OUTPUT] = message
        return
    telling = session.config.pluginmanager.get_plugin("gpulint-telling")
    if telling is not None:
        telling.take(message)


@pytest.fixture
def gpu_memory(request: pytest.FixtureRequest) -> Iterator[GpuMemory]:
    """Watches the memory of the test's steps and of its call; see `gpulint.testing.steps.GpuMemory`."""
    with request.config.stash[_RUNNING].watching(request.node) as memory:
        yield memory

"""pytest plugin: fails a test whose steps leave memory behind on the GPU, and says which variable holds it.

Mark a test that trains (or that is one step), or take the fixture `gpu_memory` and mark the steps yourself:

    @pytest.mark.gpu_memory(max_drift="0B", steps=20)
    def test_training_keeps_nothing():
        train(model, loader)

    def test_step(gpu_memory):
        for batch in gpu_memory.steps(batches):
            trainer.step(batch)
        gpu_memory.assert_no_drift()

Nothing here imports torch before a test asks for it. Without CUDA live tensors are tracked on the CPU.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pytest

if TYPE_CHECKING:
    from gpulint.runtime.record.result import Drift, RankResult

FEWEST = 5  # sampled steps below which a test is repeated, or else cannot be judged
_MOST_WARMUP = 12  # calls that warm-up may take when a test is repeated
_MARKER = "gpu_memory"

Item = TypeVar("Item")


class Limits(NamedTuple):
    """What a marker asks for."""

    max_drift: int = 0
    steps: int = 20
    warmup: int | None = None
    device: str = "auto"


class GpuMemory:
    """The fixture's value: marks steps and tells what they left behind. Sizes are bytes."""

    def __init__(self, limits: Limits, root: str) -> None:
        from gpulint.runtime.child.inprocess import Watch

        self.limits = limits
        self._watch = Watch(limits.steps, limits.warmup, limits.device, root)
        self._running = False

    def start(self) -> None:
        """Begin to watch. The fixture has done so."""
        self._watch.__enter__()
        self._running = True

    def step(self) -> None:
        """The end of one step, in a loop that has neither an optimizer nor a module's forward."""
        self._watch.step()

    def steps(self, items: Iterable[Item] | int | None = None) -> Iterator[Item | int]:
        """Yield each of `items`, or as many numbers as it takes (with warm-up), with a step's end after each."""
        if items is not None and not isinstance(items, int):
            for item in items:
                yield item
                self.step()
            return
        most = items if items is not None else self.limits.steps + _MOST_WARMUP
        for number in range(most):
            if items is None and self.sampled >= self.limits.steps:
                return
            yield number
            self.step()

    @property
    def sampled(self) -> int:
        """The steps sampled so far, warm-up not counted."""
        return self._watch.sampled

    def result(self, anew: bool = True) -> RankResult:
        """Everything measured. Ends the watch; call it while what may leak is still held."""
        if self._running:
            self._running = False
            self._watch.leave(anew)
        found = self._watch.result
        assert found is not None
        return found

    @property
    def leaks(self) -> tuple[Drift, ...]:
        """The birth sites that leak on the GPU, largest first. Ends the watch."""
        return self.result().leaks("device")

    @property
    def drift(self) -> float:
        """Bytes per step that stay on the GPU. Ends the watch."""
        return sum(leak.bytes_per_step for leak in self.leaks)

    def assert_no_drift(self, max_drift: str | int | None = None) -> None:
        """Fail the test if more than `max_drift` bytes ("512B", "1MiB") a step stay, or too few steps were seen."""
        __tracebackhide__ = True
        allowed = self.limits.max_drift if max_drift is None else _size(max_drift)
        problem = explain(self.result(), allowed)
        if problem is not None:
            pytest.fail(problem, pytrace=False)


def explain(result: RankResult, allowed: int) -> str | None:
    """Why a result is not acceptable, with the holders; None where it is."""
    from gpulint.units import format_bytes

    steps = result.steps()
    where = result.environment.device_name or result.environment.device
    if result.environment.device == "cpu":
        where = "the CPU, as it would be on a GPU"
    if steps < FEWEST:
        return (
            f"gpu_memory: only {steps} steps were sampled, which is too few to judge: let the test run at least "
            f"{FEWEST + 4} steps, or mark them with gpu_memory.step()"
        )
    leaks = result.leaks("device")
    drift = sum(leak.bytes_per_step for leak in leaks)
    if drift <= allowed:
        return None
    sites = {leak.site for leak in leaks}
    lines = [
        f"gpu_memory: {format_bytes(round(drift))} a step stay on the GPU, {format_bytes(allowed)} are allowed "
        f"({steps} steps, {where})"
    ]
    lines += [
        f"  held by {holder.text}"
        for holder in result.holders
        if holder.place == "device" and holder.bound is None and any(b.site in sites for b in holder.births)
    ]
    lines += [
        f"  {format_bytes(round(leak.bytes_per_step))} a step born in {leak.site.function}, "
        f"{leak.site.file}:{leak.site.line}"
        for leak in leaks[:5]
    ]
    return "\n".join(lines)


def _size(given: str | int) -> int:
    from gpulint.units import parse_bytes

    return given if isinstance(given, int) else parse_bytes(given)


def _limits(marker: pytest.Mark | None) -> Limits:
    if marker is None:
        return Limits()
    unknown = set(marker.kwargs) - set(Limits._fields)
    if marker.args or unknown:
        names = ", ".join(Limits._fields)
        raise pytest.UsageError(f"@pytest.mark.gpu_memory takes keywords only, of {names}")
    limits = Limits(**marker.kwargs)
    try:
        size = _size(limits.max_drift)
    except ValueError as error:
        raise pytest.UsageError(f"@pytest.mark.gpu_memory: max_drift: {error}") from error
    if not isinstance(limits.steps, int) or limits.steps < FEWEST:
        raise pytest.UsageError(f"@pytest.mark.gpu_memory: steps must be a number of at least {FEWEST}")
    return limits._replace(max_drift=size)


_WATCHES: pytest.StashKey[GpuMemory] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f'{_MARKER}(max_drift="0B", steps=20, warmup=None, device="auto"): fail if a step leaves more than max_drift '
        "bytes on the GPU; a test that makes no steps itself is called once per step",
    )


def _begin(item: pytest.Item) -> GpuMemory:
    try:
        import torch  # noqa: F401
    except ImportError:
        pytest.fail("gpu_memory needs torch: pip install gpulint[verify]", pytrace=False)
    memory = GpuMemory(_limits(item.get_closest_marker(_MARKER)), str(item.config.rootpath))
    item.stash[_WATCHES] = memory
    memory.start()
    return memory


@pytest.fixture
def gpu_memory(request: pytest.FixtureRequest) -> Iterator[GpuMemory]:
    """Watches the memory of the test's steps; see `gpulint.pytest_plugin.GpuMemory`."""
    memory = _begin(request.node)
    yield memory
    memory.result(anew=False)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    marked = pyfuncitem.get_closest_marker(_MARKER) is not None
    if not marked:
        return (yield)
    by_fixture = _WATCHES in pyfuncitem.stash
    memory = pyfuncitem.stash[_WATCHES] if by_fixture else _begin(pyfuncitem)
    try:
        outcome = yield
        if not by_fixture and memory.sampled < FEWEST:
            _repeat(pyfuncitem, memory)
    finally:
        result = memory.result(anew=False)
    problem = explain(result, memory.limits.max_drift)
    if problem is not None:
        pytest.fail(problem, pytrace=False)
    return outcome


def _repeat(item: pytest.Function, memory: GpuMemory) -> None:
    """The test makes no steps of its own, so it is one: call it again until enough are sampled."""
    function = item.obj
    if inspect.iscoroutinefunction(function):
        pytest.fail("gpu_memory: an async test must mark its steps with gpu_memory.step()", pytrace=False)
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    for _ in memory.steps():
        function(**arguments)

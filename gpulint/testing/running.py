"""The hooks that measure: around each test's setup, call and teardown, in the process that runs it. Torch is imported with the
first test that needs it."""

from __future__ import annotations

import contextlib
import inspect
import os
import shlex
import sys
from collections.abc import Generator, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from unittest import TestCase

import pytest

from gpulint.memory.errors import empty_frames
from gpulint.testing import baselines
from gpulint.testing.asking import CLEAR_FRAMES, FEWEST, LIMITS, NO_SYNC, Limits, Misuse, asked
from gpulint.testing.telling import Leftover, Peaks, report_of

if TYPE_CHECKING:
    from gpulint.testing.devices import Device
    from gpulint.testing.leaks import Leaks
    from gpulint.testing.peaks import Fixtures, Meter
    from gpulint.testing.steps import GpuMemory

FIXTURE: Final = "gpu_memory"
NO_TORCH: Final = "gpu_memory needs torch: pip install gpulint[verify]"
_FAILED: pytest.StashKey[list[BaseException]] = pytest.StashKey()
_WATCH: pytest.StashKey[GpuMemory] = pytest.StashKey()
_METER: pytest.StashKey[Meter] = pytest.StashKey()
_PEAK: pytest.StashKey[dict[str, Any]] = pytest.StashKey()

Wrapper = Generator[None, Any, Any]


class Running:
    """One a process. `leftovers` is what tests left so far."""

    def __init__(self, config: pytest.Config, peaks: Peaks) -> None:
        self._config = config
        self._options = config.option
        self._root = str(config.rootpath)
        self._peaks = peaks
        self._devices: dict[str, Device] = {}
        self._fixtures: dict[str, Fixtures] = {}
        self._leaks: Leaks | None = None
        self._wanted = bool(self._options.gpu_memory_leaks)
        self.looked_at = 0
        self.leftovers: list[Leftover] = []

    @property
    def where(self) -> str:
        """Where what tests leave is measured; "" where none ran."""
        return "" if self._leaks is None else self._leaks.where

    # -- what is needed

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Fixtures that are measured later may be set up by tests that are not: they are watched from the beginning."""
        try:
            measured = [item for item in session.items if self._measures(item)]
        except Misuse as error:  # of a marker that a hook has put there: the others are told where they stand
            raise pytest.UsageError(str(error)) from error
        self._wanted = self._wanted or bool(measured)
        if measured and find_spec("torch") is not None:
            for item in measured:
                self._device(self._limits_or_none(item).device)

    def _limits(self, item: pytest.Item) -> Limits | None:
        """What the test's marker asks for, measured where the marker or else the command line says; None without one. Raises
        Misuse."""
        try:
            limits: Limits | None = asked(item, LIMITS)
        except Misuse as error:
            raise Misuse(f"{item.nodeid}: {error}") from error
        if limits is None or limits.device != "auto":
            return limits
        return replace(limits, device=self._options.gpu_memory_device)

    def _limits_or_none(self, item: pytest.Item) -> Limits:
        """The same, and no limits where the test has no marker."""
        return self._limits(item) or Limits(device=self._options.gpu_memory_device)

    def _measures(self, item: pytest.Item) -> bool:
        """Whether the test's peak is wanted."""
        limits = self._limits(item)
        return _has_fixture(item) or bool(limits and limits.max_peak is not None) or self._holds(item)

    def _holds(self, item: pytest.Item) -> bool:
        """Whether the test is held against the baseline, or written into it."""
        marked = self._options.gpu_memory_all or item.get_closest_marker(LIMITS) is not None
        return bool(self._peaks.path) and marked

    def _device(self, wanted: str) -> Device:
        from gpulint.testing.devices import choose
        from gpulint.testing.peaks import Fixtures

        if wanted not in self._devices:
            chosen = choose(wanted, self._root)
            same = next((one for one in self._devices.values() if one.kind == chosen.kind), chosen)
            self._devices[wanted] = same
            self._fixtures.setdefault(same.kind, Fixtures(same))
        return self._devices[wanted]

    # -- around a test

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Wrapper:
        if self._options.gpu_memory_leaks and self._leaks is None:
            from gpulint.testing.leaks import Leaks

            device = self._device(self._options.gpu_memory_device)
            self._leaks = Leaks(device, self._fixtures[device.kind], self._config)
        outcome = yield
        self._let_go(item)
        if self._leaks is not None:
            self._look(item, self._leaks)
        return outcome

    def _look(self, item: pytest.Item, leaks: Leaks) -> None:
        found = leaks.after(item)
        self.looked_at += 1
        self.leftovers += found
        if self._options.gpu_memory_leaks == "error" and any(not one.reason for one in found):
            item.ihook.pytest_runtest_logreport(report=report_of(item, found))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Within the wrappers of others, which are to see how it ends, and after what skips a test."""
        if not self._measures(item):
            return
        limits = self._limits_or_none(item)
        _need(limits.device)
        from gpulint.testing.peaks import Meter

        device = self._device(limits.device)
        fixtures = self._fixtures[device.kind]
        meter = item.stash[_METER] = Meter(device, fixtures, item, self._root, limits.max_peak)
        meter.enter()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Wrapper:
        self._let_go(item)
        try:
            return (yield)
        finally:
            meter = item.stash.get(_METER, None)
            if meter is not None:
                del item.stash[_METER]
                meter.leave()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Wrapper:
        if not self._wanted or not self._fixtures:
            return (yield)
        before = [(fixtures, fixtures.before(fixturedef)) for fixtures in self._fixtures.values()]
        try:
            return (yield)
        finally:
            for fixtures, pieces in before:
                fixtures.set_up(fixturedef, pieces)

    def pytest_fixture_post_finalizer(self, fixturedef: Any) -> None:
        for fixtures in self._fixtures.values():
            fixtures.finished(fixturedef)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Wrapper:
        report = yield
        if call.excinfo is not None:
            item.stash.setdefault(_FAILED, []).append(call.excinfo.value)
        if call.when == "call" and _PEAK in item.stash:
            report.gpulint_peak = item.stash[_PEAK]
            del item.stash[_PEAK]
        return report

    def _let_go(self, item: pytest.Item) -> None:
        """Clear the frames of all exceptions that phases of this test ended by; the exceptions and their tracebacks stay."""
        if not self._config.getini(CLEAR_FRAMES) or "torch" not in sys.modules:
            return
        for error in item.stash.get(_FAILED, []):
            empty_frames(error)
        item.stash[_FAILED] = []
        last = getattr(sys, "last_value", None)
        if isinstance(last, BaseException):
            empty_frames(last)

    def pytest_sessionfinish(self) -> None:
        if self._leaks is not None:
            self._leaks.stop()

    # -- the call

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Wrapper:
        limits, meter = self._limits_now(item), item.stash.get(_METER, None)
        if meter is None and self._measures(item):
            late = f"{LIMITS}: the marker came while fixtures were set up, too late for a peak"
            pytest.fail(late, pytrace=False)
        watches = limits is not None and limits.watches_steps
        problems: list[str | None] = []
        with self.watching(item) if watches else contextlib.nullcontext() as memory:
            try:
                if meter is not None:
                    self._begin_peak(item, meter)
                outcome = yield from self._run(item)
                if memory is not None and not _has_fixture(item):
                    _repeat(item, memory)
                if meter is not None:
                    problems.append(self._judge_peak(item, meter, limits))
            finally:
                if meter is not None:
                    meter.end()
        if memory is not None:
            problems.append(memory.problem(memory.result(anew=False), memory.limits.max_drift))
        said = "\n".join(one for one in problems if one is not None)
        if said:
            pytest.fail(said, pytrace=False)
        return outcome

    def _limits_now(self, item: pytest.Item) -> Limits | None:
        """As `_limits`, with a marker that a fixture has put there, which fails the test if it is wrong."""
        try:
            return self._limits(item)
        except Misuse as error:
            problem = str(error)
        pytest.fail(problem, pytrace=False)

    def _run(self, item: pytest.Item) -> Wrapper:
        allowed = asked(item, NO_SYNC)
        if allowed is None:
            return (yield)
        _need("cuda")
        from gpulint.testing.steps import counted, too_many

        with counted(self._root) as found:
            outcome = yield
        problem = too_many(found, allowed)
        if problem is not None:
            pytest.fail(problem, pytrace=False)
        return outcome

    @contextlib.contextmanager
    def watching(self, item: pytest.Item) -> Iterator[GpuMemory]:
        """The steps of a test are watched meanwhile. The fixture does so, and the call of a test that is marked: with the same where
        there are both."""
        outermost = _WATCH not in item.stash
        if outermost:
            limits = self._limits_or_none(item)
            _need(limits.device)
            from gpulint.testing.steps import GpuMemory

            item.stash[_WATCH] = GpuMemory(limits, self._root, item.stash.get(_METER, None))
        memory = item.stash[_WATCH]
        try:
            yield memory
        finally:
            memory.result(anew=False)
            for device in self._devices.values():
                device.resume()
            if outermost:
                del item.stash[_WATCH]

    def _begin_peak(self, item: pytest.Item, meter: Meter) -> None:
        if self._holds(item):
            known = self._peaks.allowed(item.nodeid, meter.device)
            if known is not None:
                meter.limit = known if meter.limit is None else min(known, meter.limit)
        meter.begin()

    def _judge_peak(self, item: pytest.Item, meter: Meter, limits: Limits | None) -> str | None:
        allowed = limits.max_peak if limits is not None else None
        if allowed is not None and meter.peak > allowed:
            return meter.problem(allowed)
        if not self._holds(item) or (meter.peak == 0 and item.get_closest_marker(LIMITS) is None):
            return None
        if self._options.gpu_memory_write_baseline:
            item.stash[_PEAK] = self._peaks.entry(item.nodeid, meter)
            return None
        known = self._peaks.look_up(item.nodeid, meter.device)
        if known is None:
            item.stash[_PEAK] = {"nodeid": item.nodeid, "held": None}
            return self._peaks.missing(item.nodeid, meter.device, self._renewing(item))
        held = baselines.compared(meter.peak, known.allocated, self._peaks.tolerance)
        item.stash[_PEAK] = {"nodeid": item.nodeid, "held": held.to_json()}
        if held.status != "exceeded":
            return None
        return self._peaks.problem(meter, known, held.now, self._renewing(item))

    def _renewing(self, item: pytest.Item) -> str:
        """The command that writes down a test's peak, from where pytest was started."""
        asked_for = self._options.gpu_memory_device
        device = [] if asked_for == "auto" else ["--gpu-memory-device", asked_for]
        options = ["--gpu-memory-baseline", self._peaks.shown, "--gpu-memory-write-baseline", *device]
        every = ["--gpu-memory-all"] if item.get_closest_marker(LIMITS) is None else []
        # Node ids begin at pytest's root
        file = os.path.relpath(item.path, item.config.invocation_params.dir)
        return shlex.join(["pytest", *options, *every, file + "".join(item.nodeid.partition("::")[1:])])


def _has_fixture(item: pytest.Item) -> bool:
    return FIXTURE in getattr(item, "fixturenames", ())


def _need(device: str) -> None:
    """Fails the test where there is no torch, and skips it where it asks for a GPU and there is none."""
    if find_spec("torch") is None:
        pytest.fail(NO_TORCH, pytrace=False)
    if device == "cuda" and (why := no_cuda()):
        pytest.skip(f"gpu_memory: this test asks for a GPU, and {why}")


def no_cuda() -> str:
    """Why there is no GPU, as part of a sentence; empty where there is one."""
    from gpulint.runtime.observing.machine import has_cuda, no_gpu

    return "" if has_cuda() else no_gpu()


def _repeat(item: pytest.Item, memory: GpuMemory) -> None:
    """Where the test makes no steps of its own, it is one: call it again until enough are sampled."""
    if memory.sampled >= FEWEST:
        return
    names = getattr(getattr(item, "_fixtureinfo", None), "argnames", None)
    function: Any = getattr(item, "obj", None)
    in_class = getattr(item, "cls", None)
    if names is None or not isinstance(item, pytest.Function) or issubclass(in_class or object, TestCase):
        pytest.fail(
            "gpu_memory: only a test function can be repeated; let this test make its steps itself",
            pytrace=False,
        )
    if inspect.iscoroutinefunction(function):
        pytest.fail("gpu_memory: an async test must mark its steps with gpu_memory.step()", pytrace=False)
    arguments = {name: item.funcargs[name] for name in names}
    for _ in memory.steps():
        function(**arguments)

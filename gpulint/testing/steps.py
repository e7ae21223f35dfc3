"""A test's steps: what they leave behind, and who holds it, the value of the fixture `gpu_memory`; and how often a test waits for the GPU."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
import torch

from gpulint.runtime.child.harness import Harness
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record.options import Options
from gpulint.runtime.record.result import Drift, RankResult
from gpulint.testing.asking import FEWEST, LIMITS, Limits, size_of
from gpulint.testing.devices import place_of
from gpulint.testing.peaks import Meter
from gpulint.units import format_bytes, plural

_MOST_WARMUP = 12  # calls that warm-up may take when a test is repeated

Item = TypeVar("Item")


class GpuMemory:
    """Marks steps and tells what they left behind, and the peak of the test's call. Sizes are bytes."""

    def __init__(self, limits: Limits, root: str, meter: Meter | None = None) -> None:
        self.limits = limits
        self.root = root
        told = {"steps": limits.steps, "warmup": limits.warmup, "device": limits.device, "home": root}
        self._harness = Harness(Options.from_json(told), endless=True)
        self._result: RankResult | None = None
        self._meter = meter
        self._harness.start()

    def step(self) -> None:
        """The end of one step, in a loop that has neither an optimizer nor a module's forward."""
        self._harness.step()

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
        return self._harness.session.sampled

    def result(self, anew: bool = True) -> RankResult:
        """Everything measured. Ends the watch; call it while what may leak is still held."""
        if self._result is None:
            if self._meter is not None:
                self._meter.note()  # the watch shares torch's counters, and takes its own back
            self._result = self._harness.leave(anew)
        return self._result

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
        allowed = self.limits.max_drift if max_drift is None else size_of(LIMITS, "max_drift", max_drift)
        problem = self.problem(self.result(), allowed)
        if problem is not None:
            pytest.fail(problem, pytrace=False)

    @property
    def peak(self) -> int:
        """The most bytes that were allocated at once since the test's call began: see docs/pytest.md for what counts."""
        return self._measured().peak

    def reset_peak(self) -> None:
        """Let `peak` begin anew here."""
        self._measured().begin()

    def assert_peak(self, max_peak: str | int | None = None) -> None:
        """Fail the test if more than `max_peak` bytes ("2GiB") were allocated at once; without an argument the
        marker's limit."""
        __tracebackhide__ = True
        allowed = self.limits.max_peak if max_peak is None else size_of(LIMITS, "max_peak", max_peak)
        if allowed is None:
            pytest.fail("gpu_memory.assert_peak() needs a limit, such as assert_peak('2GiB')", pytrace=False)
        meter = self._measured()
        if meter.peak > allowed:
            pytest.fail(meter.problem(allowed), pytrace=False)

    def _measured(self) -> Meter:
        if self._meter is None or not self._meter.begun:
            pytest.fail(
                "gpu_memory: the peak is that of a test's call, and the test has to ask for the fixture by name",
                pytrace=False,
            )
        return self._meter

    def problem(self, result: RankResult, allowed: int) -> str | None:
        """Why a result is not acceptable, with the holders; None where it is."""
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
        growing = (one for one in result.holders if one.place == "device" and one.bound is None)
        lines += [f"  held by {one.text}" for one in growing if any(b.site in sites for b in one.births)]
        lines += [
            f"  {format_bytes(round(leak.bytes_per_step))} a step born in {place_of(leak.site, self.root)}"
            for leak in leaks[:5]
        ]
        return "\n".join(lines)


_SAID = "synchronizing CUDA operation"


@contextmanager
def counted(root: str) -> Iterator[Counter[str]]:
    """The synchronizations of a block, by the line that made them: `train(), train.py:12`. Other warnings pass."""
    frames = Frames(root)
    found: Counter[str] = Counter()
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def showwarning(message: Warning | str, *args: Any, **kwargs: Any) -> None:
            if _SAID not in str(message):
                show(message, *args, **kwargs)
                return
            frame = frames.user_frame(sys._getframe(1))
            site = frames.sites[frames.index(frame)]
            found[place_of(site, root) if site.line else "no line of the project"] += 1

        warnings.showwarning = showwarning
        warnings.filterwarnings("always", message=f".*{_SAID}")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode(before)


def too_many(found: Counter[str], allowed: int) -> str | None:
    """Why the synchronizations are too many; None where they are not."""
    number = found.total()
    if number <= allowed:
        return None
    head = f"gpu_no_sync: the test waited for the GPU {plural(number, 'time')}, {allowed} are allowed"
    lines = [f"  {count} at {where}" for where, count in found.most_common(10)]
    return "\n".join([head, *lines])

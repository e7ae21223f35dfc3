"""Tests' peaks against the committed ones, `--gpu-memory-baseline`, and what the run says at its end: what tests left, largest first, and
what became of the baseline. Imports no torch.

Under xdist the workers measure, and this is in the process that started them: leftovers come with a worker's last message,
peaks with each test's report.
"""

from __future__ import annotations

import linecache
import os
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from gpulint.runtime.record.peaks import Check, LineAtPeak, Peak
from gpulint.runtime.record.records import Record
from gpulint.testing import baselines
from gpulint.testing.baselines import BadBaseline, Key
from gpulint.units import format_bytes, plural

if TYPE_CHECKING:
    from gpulint.testing.devices import Device
    from gpulint.testing.peaks import Meter


_MOST_GROWN: Final = 3


@dataclass(slots=True)
class Peaks:
    """The committed peaks, and those that were measured. Every process that runs tests reads the file; one writes it. `held` says
    by test how its peak compares, None where nothing is committed."""

    path: str
    tolerance: float
    known: Mapping[Key, Peak]
    shown: str = ""
    measured: dict[Key, Peak] = field(default_factory=dict)
    held: dict[str, Check | None] = field(default_factory=dict)

    def look_up(self, nodeid: str, device: Device) -> Peak | None:
        """What is committed for a test on this device."""
        return self.known.get(_key(nodeid, device.card))

    def allowed(self, nodeid: str, device: Device) -> int | None:
        """The most bytes that are no failure; None where nothing is committed."""
        if device.kind == "cuda":
            import torch

            if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
                return None
        known = self.look_up(nodeid, device)
        return None if known is None else baselines.allowed(known.allocated, self.tolerance)

    def problem(self, meter: Meter, known: Peak, now: int, renewing: str) -> str:
        """Why a peak that grew is too high: the lines that grew, those that make it, who holds the memory. `renewing` is the
        command that writes it down."""
        before = known.allocated
        head = (
            f"gpu_memory: the peak of this test grew from {format_bytes(before)} to {format_bytes(now)}, by "
            f"{format_bytes(now - before)}; {self.tolerance:g} % are allowed ({meter.where})"
        )
        grown = [
            f"  grown by {format_bytes(line.grew or 0)}: {line.function or 'code'}, {line.file}:{line.line}"
            for line in baselines.grown(self._lines(meter), known.lines)[:_MOST_GROWN]
            if line.line
        ]
        return "\n".join([head, *grown, *meter.evidence(), f"  if that is meant: {renewing}"])

    def missing(self, nodeid: str, device: Device, renewing: str) -> str:
        """That nothing is committed for a test on this device, and what adds it."""
        key = _key(nodeid, device.card)
        others = ", ".join(baselines.elsewhere(self.known, key))
        but = f"; it has {others}" if others else ""
        head = f"gpu_memory: {self.shown} has no peak of this test on {key.where}{but}"
        return f"{head}\n  write it: {renewing}"

    def entry(self, nodeid: str, meter: Meter) -> dict[str, Any]:
        """What is to be written down of a test, as plain data."""
        peak = Peak(meter.peak, meter.device.reserved(), lines=self._lines(meter))
        return {"key": _key(nodeid, meter.device.card).to_json(), "peak": peak.to_json()}

    def take(self, data: dict[str, Any]) -> None:
        """What a report carries: an entry to be written, or a comparison. Of several attempts at a test the last counts."""
        if "key" in data:
            self.measured[Key.from_json(data["key"])] = Peak.from_json(data["peak"])
        else:
            held = data["held"]
            self.held[data["nodeid"]] = None if held is None else Check.from_json(held)

    def write(self) -> str:
        """Write what was measured into the file, all other entries kept; one sentence about it. Raises BadBaseline."""
        if not self.measured:
            return f"{self.shown} is unchanged: no peak was measured (mark tests gpu_memory, or add --gpu-memory-all)"
        merged = baselines.add(self.path, self.measured)
        kept = len(merged) - len(self.measured)
        return f"{plural(len(self.measured), 'peak')} written to {self.shown}, {kept} other entries kept"

    def _lines(self, meter: Meter) -> tuple[LineAtPeak, ...]:
        found = []
        for site, size in meter.lines()[: baselines.MOST_LINES]:
            file, code = baselines.relative_to(self.path, site.file), linecache.getline(site.file, site.line)
            found.append(LineAtPeak(file, site.line, site.function, code.strip(), size))
        return tuple(found)


def _key(nodeid: str, card: str) -> Key:
    """A test on a card, with this torch; under torchrun of this rank."""
    import torch

    try:
        world_size, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    except (KeyError, ValueError):
        world_size, rank = 1, 0
    return Key(nodeid, card, baselines.torch_minor(torch.__version__), world_size, rank)


def open_peaks(path: str, writes: bool, tolerance: float) -> Peaks:
    """The peaks of a file, or none where there is no `path`. Raises BadBaseline."""
    if not path:
        return Peaks("", tolerance, {})
    known = baselines.read(path, missing_is_empty=writes)
    if writes:
        baselines.check_writable(path)
    return Peaks(path, tolerance, known, os.path.relpath(path))


OUTPUT: Final = "gpulint_leaks"  # the entry of a worker's last message
_MOST_TOLD: Final = 20
_DONE: Final = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


@dataclass(frozen=True, slots=True)
class Leftover(Record):
    """What one test, or a fixture that ended with it, left behind. Sizes in bytes. `reason` says why it is allowed."""

    nodeid: str
    size: int
    tensors: int
    where: str
    owner: str = ""
    holders: tuple[str, ...] = ()
    births: tuple[str, ...] = ()
    reason: str = ""

    def lines(self) -> list[str]:
        """What is told about it, below its first line."""
        return [*(f"held by {holder}" for holder in self.holders), *self.births]

    def head(self) -> str:
        """How much and of whom."""
        of = f"{self.owner}, which ended with this test, left" if self.owner else "this test left"
        return (
            f"gpu_memory: {of} {format_bytes(self.size)} in {plural(self.tensors, 'tensor')} on {self.where}"
        )


def report_of(item: pytest.Item, leftovers: Iterable[Leftover]) -> pytest.TestReport:
    """The error of a test that left something it may not."""
    wrong = [one for one in leftovers if not one.reason]
    text = "\n".join(line for one in wrong for line in [one.head(), *(f"  {said}" for said in one.lines())])
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="failed",
        longrepr=text,
        when="teardown",
        duration=0.0,
    )


@dataclass(slots=True, eq=False)  # hashable: pytest before 9 keeps its plugins in a set
class Telling:
    """One a session. `options` are those of the command line."""

    options: Namespace
    peaks: Peaks
    leftovers: list[Leftover] = field(default_factory=list)
    looked_at: int = 0
    where: str = ""
    lost: list[str] = field(default_factory=list)  # workers that ended without a last message
    said: list[str] = field(default_factory=list)

    def take(self, message: dict[str, Any]) -> None:
        """What one process found out about leftovers."""
        self.leftovers += map(Leftover.from_json, message["leftovers"])
        self.looked_at += message["looked_at"]
        self.where = message["where"] or self.where

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = getattr(report, "gpulint_peak", None)
        if data is not None and (report.passed or "key" not in data):
            self.peaks.take(data)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        message = getattr(node, "workeroutput", {}).get(OUTPUT)
        if message is not None:
            self.take(message)
        elif self.options.gpu_memory_leaks:
            self.lost.append(node.gateway.id)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not self.options.gpu_memory_write_baseline:
            return
        if exitstatus not in _DONE:
            self.said.append(f"{self.peaks.shown} is unchanged: the run did not come to its end")
            return
        try:
            self.said.append(self.peaks.write())
        except BadBaseline as error:
            self.said.append(str(error))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.options.gpu_memory_leaks:
            self._tell_leaks(terminalreporter)
        if self.peaks.path:
            terminalreporter.write_sep("=", "GPU memory peaks", bold=True)
            for line in [*self.said, *self._compared(self.peaks.held)]:
                terminalreporter.write_line(line)

    def _tell_leaks(self, out: Any) -> None:
        wrong = sorted((one for one in self.leftovers if not one.reason), key=lambda one: -one.size)
        allowed = [one for one in self.leftovers if one.reason]
        out.write_sep("=", "GPU memory that tests left behind", bold=True)
        width = max((len(format_bytes(one.size)) for one in wrong), default=0)
        for one in wrong[:_MOST_TOLD]:
            owner = f" ({one.owner}, which ended with it)" if one.owner else ""
            out.write_line(f"{format_bytes(one.size):>{width}}  {one.nodeid}{owner}")
            for said in one.lines():
                out.write_line(f"{'':>{width}}    {said}")
        if len(wrong) > _MOST_TOLD:
            out.write_line(f"and {len(wrong) - _MOST_TOLD} more, each with less")
        out.write_line(self._total(wrong))
        if allowed:
            out.write_line(f"{format_bytes(sum(one.size for one in allowed))} more are allowed:")
            for reason in sorted({one.reason for one in allowed}):
                out.write_line(f"  {reason}")
        if self.lost:
            out.write_line(f"What tests of {', '.join(self.lost)} left is not known: these workers crashed")

    def _total(self, wrong: list[Leftover]) -> str:
        number = len({one.nodeid for one in wrong})
        if not number:
            return f"none of {self.looked_at} tests left anything behind ({self.where or 'none ran'})"
        size = format_bytes(sum(one.size for one in wrong))
        return f"{number} of {self.looked_at} tests left {size} behind ({self.where})"

    def _compared(self, every: Mapping[str, Check | None]) -> list[str]:
        if self.options.gpu_memory_write_baseline:
            return []
        if not every:
            what = "used the device" if self.options.gpu_memory_all else "is marked gpu_memory"
            return [f"no peak was held against {self.peaks.shown}: no test that ran {what}"]
        lines = []
        held = {nodeid: one for nodeid, one in every.items() if one is not None}
        if held:
            lines.append(f"{plural(len(held), 'peak')} held against {self.peaks.shown}")
        if len(held) < len(every):
            number = f"{len(every) - len(held)} of {len(every)} tests"
            lines.append(f"{number} have no peak in {self.peaks.shown} for this card and torch, and failed")
        fell = [(nodeid, one) for nodeid, one in held.items() if one.status == "fell"]
        for nodeid, one in fell[:_MOST_TOLD]:
            lines.append(f"  fell from {format_bytes(one.before or 0)} to {format_bytes(one.now)}: {nodeid}")
        renew = "  renew what fell with --gpu-memory-write-baseline, so that it cannot grow back unseen"
        return [*lines, renew] if fell else lines

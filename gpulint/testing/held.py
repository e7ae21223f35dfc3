"""Tests' peaks against the committed ones: `--gpu-memory-baseline`. Imports no torch."""

from __future__ import annotations

import linecache
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gpulint.gate import baselines
from gpulint.gate.baselines import Baselines, Key
from gpulint.runtime.record.gate import Check, LineAtPeak, Peak
from gpulint.units import format_bytes

if TYPE_CHECKING:
    from gpulint.testing.gpu import Device
    from gpulint.testing.peaks import Meter

_MOST_GROWN: Final = 3


@dataclass(slots=True)
class Peaks:
    """The committed peaks, and those that were measured. Every process that runs tests reads the file; one writes it. `held` says
    by test how its peak compares, None where nothing is committed."""

    path: str
    tolerance: float
    known: Baselines
    shown: str = ""
    measured: dict[Key, Peak] = field(default_factory=dict)
    held: dict[str, Check | None] = field(default_factory=dict)

    def look_up(self, nodeid: str, device: Device) -> Peak | None:
        """What is committed for a test on this device."""
        return self.known.look_up(_key(nodeid, device.card))

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
        others = ", ".join(self.known.elsewhere(key))
        but = f"; it has {others}" if others else ""
        return (
            f"gpu_memory: {self.shown} has no peak of this test on {key.where}{but}\n  write it: {renewing}"
        )

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
        kept = len(merged.peaks) - len(self.measured)
        number = len(self.measured)
        return f"{number} peak{'s' * (number != 1)} written to {self.shown}, {kept} other entries kept"

    def _lines(self, meter: Meter) -> tuple[LineAtPeak, ...]:
        return tuple(
            LineAtPeak(
                baselines.relative_to(self.path, site.file),
                site.line,
                site.function,
                linecache.getline(site.file, site.line).strip(),
                size,
            )
            for site, size in meter.lines()[: baselines.MOST_LINES]
        )


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
        return Peaks("", tolerance, Baselines())
    known = baselines.read(path, missing_is_empty=writes)
    if writes:
        baselines.check_writable(path)
    return Peaks(path, tolerance, known, os.path.relpath(path))

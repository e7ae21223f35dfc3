"""How sure the figures are: the error of the emulation as it was measured, widened by what is not known."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Final

from gpulint.forecasting.cards import MIB, Card
from gpulint.forecasting.doubts import WIDENING, Steps
from gpulint.forecasting.result import Figure, Said
from gpulint.units import format_bytes

# Shares below and above the forecast: above the errors on the workloads of benchmarks/forecast.py, not those of their first reading.
ALLOCATED: Final = (0.03, 0.03)
RESERVED: Final = (0.15, 0.06)
# What kernels take for themselves is a fit: reserved may turn on whether a workspace still fits into a block that is there.
WORKSPACES: Final = (0.85, 0.95, 1.05, 1.15)
UNMEASURED: Final = (0.04, 0.06)  # on another card: other kernels, other workspaces
MEASURED_WITH: Final = "2.11"  # torch on the card
OTHER_TORCH: Final = 0.01  # for each minor version between
CONTEXT_MEASURED: Final = 24 * MIB  # which libraries a program loads on the way
CONTEXT_UNMEASURED: Final = (400 * MIB, 350 * MIB)


@dataclass(frozen=True, slots=True)
class Shares:
    """By how much of a figure it may be lower or higher."""

    low: float
    high: float

    def widened(self, low: float, high: float) -> Shares:
        return Shares(self.low + low, self.high + high)

    def around(self, value: int, floor: int | None = None) -> tuple[int, int]:
        """The interval; its lower end is at most `floor`."""
        low = value if floor is None else min(value, floor)
        return max(0, round(low * (1 - self.low))), round(value * (1 + self.high))


@dataclass(frozen=True, slots=True)
class Peaks:
    """Allocated and reserved of one replay, bytes."""

    allocated: int
    reserved: int


def figures(
    peaks: Peaks,
    others: Peaks | None,
    card: Card,
    torch: str,
    doubts: list[Said],
    training: Steps,
    settings: str,
    varied: tuple[int, ...] = (),
) -> tuple[Figure, Figure, Figure]:
    """Allocated, reserved and the process as a whole. `others` are the peaks with other answers to what lies in the data,
    `varied` what is reserved with other workspaces."""
    extra, why = _extra(card, torch, doubts, training)
    low = None if others is None else others.allocated
    top = max(peaks.allocated, others.allocated if others is not None else 0)
    allocated = Shares(*ALLOCATED).widened(*extra).around(peaks.allocated, low)
    allocated = allocated[0], max(allocated[1], top)
    seen = [peaks.reserved, *varied, *(() if others is None else (others.reserved,))]
    shares = Shares(*RESERVED).widened(*extra)
    reserved = shares.around(min(seen))[0], shares.around(max(seen))[1]
    reserved = max(reserved[0], allocated[0]), reserved[1]
    below, above = (CONTEXT_MEASURED,) * 2 if card.measured else CONTEXT_UNMEASURED
    process = reserved[0] + card.context - below, reserved[1] + card.context + above
    measured = f"every allocation of the run, kernels as measured on an H200{why}"
    replayed = (
        f"those allocations in torch's allocator, {f'with {settings}' if settings else 'default settings'}"
    )
    context = f"reserved, and {format_bytes(card.context)} of CUDA context and kernels"
    context += "" if card.measured else " as on an H200"
    return (
        Figure(peaks.allocated, *allocated, measured),
        Figure(peaks.reserved, *reserved, replayed),
        Figure(peaks.reserved + card.context, *process, context),
    )


def _extra(card: Card, torch: str, doubts: list[Said], training: Steps) -> tuple[tuple[float, float], str]:
    """What is added to the measured shares, and for what."""
    low = high = 0.0
    why: list[str] = []
    if not card.measured:
        low, high = low + UNMEASURED[0], high + UNMEASURED[1]
        why.append(f"none measured on a {card.label}" if card.known else "which card it is is not known")
    distance = abs(_minor(torch) - _minor(MEASURED_WITH))
    if distance:
        low, high = low + OTHER_TORCH * min(distance, 5), high + OTHER_TORCH * min(distance, 5)
        why.append(f"with torch {MEASURED_WITH}, not {torch.partition('+')[0]}")
    for code in dict.fromkeys(doubt.code for doubt in doubts):
        if code in WIDENING:
            low, high = low + WIDENING[code][0], high + WIDENING[code][1]
    if any(doubt.code == "varies" for doubt in doubts):
        high += _larger_step(training)
    return (low, high), "".join(f"; {one}" for one in why)


def _larger_step(training: Steps) -> float:
    """By how much of the highest step one may be higher that was not seen: three deviations above the mean."""
    later = training.peaks[2:] or training.peaks
    most = max(later)
    return max(0.0, (statistics.mean(later) + 3 * statistics.pstdev(later)) / most - 1) if most else 0.0


def _minor(version: str) -> int:
    parts = version.split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0

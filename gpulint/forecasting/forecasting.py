"""From a program to its forecast: record, replay, judge."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace
from typing import Final

from gpulint.forecasting.cards import MIB, Card
from gpulint.forecasting.recorder import ForecastError, Program, record
from gpulint.forecasting.recording import Recording
from gpulint.forecasting.replaying import Replay, Steps, replay
from gpulint.forecasting.result import Figure, Fits, Forecast, Said
from gpulint.units import format_bytes

Shares = tuple[float, float]  # below and above
# Shares below and above the forecast: above the errors on the workloads of benchmarks/forecast.py at 6e820c54, not those of their first reading.
ALLOCATED: Final = (0.03, 0.03)
RESERVED: Final = (0.15, 0.06)
# What kernels take for themselves is a fit: reserved may turn on whether a workspace still fits into a block that is there.
WORKSPACES: Final = (0.85, 0.95, 1.05, 1.15)
UNMEASURED: Final = (0.04, 0.06)  # on another card: other kernels, other workspaces
MEASURED_WITH: Final = "2.11"  # torch on the card
OTHER_TORCH: Final = 0.01  # for each minor version between
CONTEXT_MEASURED: Final = 24 * MIB  # which libraries a program loads on the way
CONTEXT_UNMEASURED: Final = (400 * MIB, 350 * MIB)


# What a forecast cannot know, in words, and by how much it widens an interval.
_WORDS: Final = {
    "mask": "how many elements a mask chooses lies in the data; all of them are taken, and the lower end of the intervals is for a tenth",
    "unique": "how many values differ lies in the data; all of them are taken to",
    "number": "a whole number is read from the card; it is taken to be 1",
    "boolean": "a condition is read from the card; it is taken to be false",
    "repeats": "how often elements are repeated lies in the data; once is taken",
    "bincount": "the largest value lies in the data; the result is taken to be as short as it may be",
    "compile": "torch.compile is left out and the model is run as it is; compiled code keeps and takes other memory",
}
DECIDED: Final = ("mask", "unique", "number", "repeats", "bincount")  # other answers to these can be tried
UNREACHED: Final = "unreached"  # of a phase that the program's text shows
MOST_UNREACHED: Final = 5
WIDENING: Final = {"compile": (0.30, 0.15), "repeats": (0.0, 0.10), "bincount": (0.0, 0.02)}


def figures(
    peaks: Replay,
    others: Replay | None,
    card: Card,
    torch: str,
    doubts: list[Said],
    settings: str = "",
    varied: tuple[int, ...] = (),
) -> tuple[Figure, Figure, Figure]:
    """Allocated, reserved and the process as a whole. `others` are the peaks with other answers to what lies in the data,
    `varied` what is reserved with other workspaces."""
    extra, why = _extra(card, torch, doubts, peaks.steps)
    played = [peaks] if others is None else [peaks, others]
    taken = [one.allocated for one in played]
    allocated = _around(min(taken), peaks.allocated, ALLOCATED, extra)
    allocated = allocated[0], max(allocated[1], *taken)
    seen = [one.reserved for one in played] + [*varied]
    reserved = _around(min(seen), max(seen), RESERVED, extra)
    reserved = max(reserved[0], allocated[0]), reserved[1]
    below, above = (CONTEXT_MEASURED,) * 2 if card.measured else CONTEXT_UNMEASURED
    process = reserved[0] + card.context - below, reserved[1] + card.context + above
    measured = f"every allocation of the run, kernels as measured on an H200{why}"
    under = f"with {settings}" if settings else "default settings"
    replayed = f"those allocations in torch's allocator, {under}"
    context = f"reserved, and {format_bytes(card.context)} of CUDA context and kernels"
    context += "" if card.measured else " as on an H200"
    return (
        Figure(peaks.allocated, *allocated, measured),
        Figure(peaks.reserved, *reserved, replayed),
        Figure(peaks.reserved + card.context, *process, context),
    )


def _around(least: int, most: int, shares: Shares, extra: Shares) -> tuple[int, int]:
    """The interval from as much below one figure as it may be lower to as much above another as it may be higher."""
    return max(0, round(least * (1 - (shares[0] + extra[0])))), round(most * (1 + (shares[1] + extra[1])))


def _extra(card: Card, torch: str, doubts: list[Said], training: Steps) -> tuple[Shares, str]:
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


@dataclass(frozen=True, slots=True)
class Recorded:
    """A program's run, and another one with other answers to what lies in the data, where that decides anything."""

    program: Program
    card: Card
    recording: Recording
    others: Recording | None
    seconds: float


def recorded(program: Program, card: Card) -> Recorded:
    """Run the program; a second time where its data may have decided something. Raises ForecastError."""
    begin = time.monotonic()
    first = record(program, card)
    others = None
    if any(doubt.code in DECIDED for doubt in first.doubts):
        try:
            others = record(replace(program, share=0.1, number=8, show_output=False), card)
        except ForecastError:
            others = None
    return Recorded(program, card, first, others, round(time.monotonic() - begin, 1))


def forecast_once(program: Program, card: Card, settings: str | None = None) -> Forecast:
    """What `program` takes on `card`. `settings` are those of torch's allocator, by default the script's own or the
    environment's. Raises ForecastError where there is no forecast, ValueError for settings that make no sense."""
    return judged(recorded(program, card), settings)


def judged(run: Recorded, settings: str | None = None) -> Forecast:
    """The forecast of a run. Raises ValueError for settings that make no sense."""
    recording, card = run.recording, run.card
    settings = recording.settings if settings is None else settings
    played = replay(recording, settings)
    if not played.allocated:
        raise ForecastError("the script put nothing on the GPU")
    said, others = _said(run, settings, played)
    allocated, reserved, process = figures(
        played, others, card, recording.torch, said, settings,
        tuple(replay(recording, settings, kernels=share).reserved for share in WORKSPACES),
    )  # fmt: skip
    fits = _fits(recording, settings, card, reserved, process)
    stopped = None
    if fits == "yes" and any(one.code == UNREACHED for one in said):
        fits = "unknown"
    elif fits != "yes":
        stopped = replay(recording, settings, max(0, card.memory - card.context)).out_of_memory
    return Forecast(
        run.program.target,
        run.program.arguments,
        card,
        recording.torch,
        recording.python,
        settings,
        len(played.steps.peaks),
        sum(mark.kind == "eval" for mark in recording.marks) if recording.facts.get("evaluated") else 0,
        run.seconds,
        allocated,
        reserved,
        process,
        fits,
        played.peak_at,
        stopped,
        played.parts,
        played.curve,
        tuple((mark.events, mark.kind) for mark in recording.marks),
        tuple(said),
    )


def _said(run: Recorded, settings: str, played: Replay) -> tuple[list[Said], Replay | None]:
    """The doubts that are left once other answers were tried, and what was played with those."""
    found = doubts_of(run.recording, played.steps)
    if run.others is None:
        return found, None
    other = replay(run.others, settings)
    if (other.allocated, other.reserved) == (played.allocated, played.reserved):
        return [one for one in found if one.code not in DECIDED], None
    return found, other


def _fits(recording: Recording, settings: str, card: Card, reserved: Figure, process: Figure) -> Fits:
    """Whether the program gets through with what the card has: the allocator gives back what it keeps before it gives up, so a
    program may fit whose peak does not."""
    if process.high <= card.memory:
        return "yes"
    context_high, context_low = process.high - reserved.high, process.low - reserved.low
    worst = (card.memory - context_high) * reserved.value // max(1, reserved.high)
    if worst > 0 and replay(recording, settings, worst).out_of_memory is None:
        return "yes"
    best = (card.memory - context_low) * reserved.value // max(1, reserved.low)
    if best <= 0 or replay(recording, settings, best).out_of_memory is not None:
        return "no"
    return "open"


# -- doubts ------------------------------------------------------------------------------------------------------


def doubts_of(recording: Recording, training: Steps) -> list[Said]:
    """Every doubt about a run, those with a line first."""
    found = [
        Said(one.code, _WORDS[one.code], one.file, one.line)
        for one in sorted(recording.doubts, key=lambda one: (one.file, one.line))
    ]

    def add(code: str, text: str, file: str = "", line: int = 0) -> None:
        found.append(Said(code, text, file, line))

    facts, seen = recording.facts, len(training.peaks)
    if not seen:
        add("no-steps", "no step of a training was seen: no optimizer stepped and no module ran twice")
    elif seen < 3 and recording.end != "finished":
        add("few-steps", f"only {seen} steps were seen")
    if recording.end == "time":
        add("time", "the time was up before enough was seen (--timeout)")
    for file, line, what in facts.get("unreached", ())[:MOST_UNREACHED]:
        add(UNREACHED, f"this {what} was not reached, and what it takes is not known", file, line)
    if recording.end == "time" and seen < 3:
        add(UNREACHED, "what comes after the steps that were seen is not known")
    if facts.get("cut_epochs"):
        what = "epochs were ended early, once their batches took the same"
        add("cut", f"{what}; a batch that is larger was not seen")
    if training.growth:
        each, ends = format_bytes(training.growth), len(training.ends)
        add("grows", f"each step leaves {each} behind, so the figures hold for {ends} steps and not for more")
    if training.spread > 0.02:
        most = f"{training.spread:.0%}"
        add("varies", f"steps differ by up to {most}; the upper end allows for one larger than those seen")
    return found

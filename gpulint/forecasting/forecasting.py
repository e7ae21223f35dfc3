"""From a program to its forecast: record, replay, judge."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from gpulint.allocator import Allocator
from gpulint.forecasting import doubts, intervals
from gpulint.forecasting.cards import Card
from gpulint.forecasting.doubts import DECIDED, Steps
from gpulint.forecasting.intervals import Peaks
from gpulint.forecasting.recorder import ForecastError, Program, record
from gpulint.forecasting.recording import Recording
from gpulint.forecasting.replaying import Replay, replay
from gpulint.forecasting.result import Figure, Fits, Forecast, Said


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


def forecast(program: Program, card: Card, settings: str | None = None) -> Forecast:
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
    training = steps_of(recording, settings)
    said, others = _said(run, training, settings, played)
    allocated, reserved, process = intervals.figures(
        Peaks(played.allocated, played.reserved), others, card, recording.torch, said, training, settings,
        tuple(replay(recording, settings, kernels=share).reserved for share in intervals.WORKSPACES),
    )  # fmt: skip
    fits = _fits(recording, settings, card, reserved, process)
    stopped = None
    if fits == "yes" and any(one.code == doubts.UNREACHED for one in said):
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
        len(training.peaks),
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


def _said(run: Recorded, training: Steps, settings: str, played: Replay) -> tuple[list[Said], Peaks | None]:
    """The doubts that are left once other answers were tried, and the peaks with those."""
    found = doubts.said(run.recording, training)
    if run.others is None:
        return found, None
    other = replay(run.others, settings)
    if (other.allocated, other.reserved) == (played.allocated, played.reserved):
        return [one for one in found if one.code not in DECIDED], None
    return found, Peaks(other.allocated, other.reserved)


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


def steps_of(recording: Recording, settings: str) -> Steps:
    """What the training's steps took, or the steps of whatever it does where nothing is trained."""
    kinds = {mark.kind for mark in recording.marks}
    kind = next((one for one in ("explicit", "train", "eval") if one in kinds), "train")
    ends = {mark.events for mark in recording.marks if mark.kind == kind}
    allocator = Allocator(settings)
    addresses: dict[int, int] = {}
    peaks: list[int] = []
    left: list[int] = []
    for index, event in enumerate(recording.events):
        if index in ends:
            peaks.append(allocator.peak_allocated)
            left.append(allocator.allocated)
            allocator.reset_peak()
        if not isinstance(event, int):
            addresses[event[0]] = allocator.malloc(event[1])
        elif event:
            allocator.free(addresses.pop(event))
    if len(recording.events) in ends:
        peaks.append(allocator.peak_allocated)
        left.append(allocator.allocated)
    return Steps(tuple(peaks), tuple(left))

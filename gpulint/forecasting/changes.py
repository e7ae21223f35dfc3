"""Changes to a program, each with a forecast of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from gpulint.forecasting.forecasting import Recorded
from gpulint.forecasting.recorder import ForecastError, record
from gpulint.forecasting.recording import Recording
from gpulint.forecasting.replaying import replay
from gpulint.forecasting.result import Change, Forecast

EXPANDABLE: Final = "expandable_segments:True"
RUN_AGAIN: Final = {
    "checkpointing": "checkpoint the repeated blocks (torch.utils.checkpoint)",
    "bf16": "run the model under bfloat16 autocast",
    "no_grad": "evaluate under torch.no_grad()",
    "foreach": "optimizer with foreach=False",
    "set_to_none": "zero_grad(set_to_none=True)",
}


def tried(run: Recorded, forecast: Forecast, say: Callable[[str], None]) -> list[Change]:
    """Every change, that which saves the most first."""
    found = [*_replayed(run.recording, forecast.settings), *_run_again(run, forecast, say)]
    return sorted(found, key=lambda one: (bool(one.problem), one.reserved + one.allocated))


def _replayed(recording: Recording, settings: str) -> Iterator[Change]:
    """Those that leave the allocations as they are, or move their frees."""
    if EXPANDABLE not in settings.replace(" ", ""):
        both = f"{settings},{EXPANDABLE}" if settings else EXPANDABLE
        played = replay(recording, both)
        yield Change(
            "expandable_segments", f"allocator setting {EXPANDABLE}", played.allocated, played.reserved
        )
    freed = without_leftovers(recording)
    played = replay(freed, settings)
    yield Change(
        "del", "del what a step leaves behind before the next begins", played.allocated, played.reserved
    )


def without_leftovers(recording: Recording) -> Recording:
    """The recording with what a step made and the next one frees freed where the step ends: what `del` (or a function of its own)
    does to outputs and losses."""
    ends = [mark.events for mark in recording.marks if mark.kind in ("train", "explicit")]
    keep = {
        number
        for kind in ("parameters", "gradients", "optimizer state")
        for number in recording.kinds.get(kind, ())
    }
    born: dict[int, int] = {}
    early: dict[int, list[int]] = {}
    moved: set[int] = set()
    step = 0
    for index, event in enumerate(recording.events):
        while step < len(ends) and index >= ends[step]:
            step += 1
        if not isinstance(event, int):
            born[event[0]] = step
        elif event and event not in keep and step - born.get(event, step) == 1:
            early.setdefault(ends[step - 1], []).append(event)
            moved.add(event)
    events: list[Any] = []
    for index, event in enumerate(recording.events):
        events += early.get(index, ())
        if not (isinstance(event, int) and event in moved):
            events.append(event)
    shifted = replace(recording, events=events, marks=[])
    return shifted


def _run_again(run: Recorded, forecast: Forecast, say: Callable[[str], None]) -> Iterator[Change]:
    for name, text in RUN_AGAIN.items():
        if name == "no_grad" and not forecast.evaluated:
            continue
        say(f"forecasting with a change: {text}")
        try:
            recording = record(replace(run.program, change=name, show_output=False), run.card)
            played = replay(recording, forecast.settings)
        except ForecastError as error:
            yield Change(name, text, problem=f"could not be tried: {error}")
            continue
        yield Change(name, text, played.allocated, played.reserved)

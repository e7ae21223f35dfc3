"""`gpulint.forecast`: what a program would take on a card, without one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from gpulint.forecasting.cards import Card, card_for
from gpulint.forecasting.forecasting import Recorded, forecast_once, judged, recorded
from gpulint.forecasting.recorder import ForecastError, Program, record
from gpulint.forecasting.recording import Recording
from gpulint.forecasting.replaying import replay
from gpulint.forecasting.result import Batch, Change, Forecast, Search

Say = Callable[[str], None]  # is told what is run

EXPANDABLE: Final = "expandable_segments:True"
RUN_AGAIN: Final = {
    "checkpointing": "checkpoint the repeated blocks (torch.utils.checkpoint)",
    "bf16": "run the model under bfloat16 autocast",
    "no_grad": "evaluate under torch.no_grad()",
    "foreach": "optimizer with foreach=False",
    "set_to_none": "zero_grad(set_to_none=True)",
}


def tried(run: Recorded, forecast: Forecast, say: Say) -> list[Change]:
    """Every change, that which saves the most first."""
    found = [*_replayed(run.recording, forecast.settings), *_run_again(run, forecast, say)]
    return sorted(found, key=lambda one: (bool(one.problem), one.reserved + one.allocated))


def _replayed(recording: Recording, settings: str) -> Iterator[Change]:
    """Those that leave the allocations as they are, or move their frees."""
    if EXPANDABLE not in settings.replace(" ", ""):
        both = f"{settings},{EXPANDABLE}" if settings else EXPANDABLE
        yield _played("expandable_segments", f"allocator setting {EXPANDABLE}", recording, both)
    freed = without_leftovers(recording)
    yield _played("del", "del what a step leaves behind before the next begins", freed, settings)


def _played(name: str, text: str, recording: Recording, settings: str) -> Change:
    played = replay(recording, settings)
    return Change(name, text, played.allocated, played.reserved)


def without_leftovers(recording: Recording) -> Recording:
    """The recording with what a step made and the next one frees freed where the step ends: what `del` (or a function of its own)
    does to outputs and losses."""
    ends = [mark.events for mark in recording.marks if mark.kind in ("train", "explicit")]
    kept = (recording.kinds.get(kind, ()) for kind in ("parameters", "gradients", "optimizer state"))
    keep = {number for numbers in kept for number in numbers}
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
    return replace(recording, events=events, marks=[])


def _run_again(run: Recorded, forecast: Forecast, say: Say) -> Iterator[Change]:
    for name, text in RUN_AGAIN.items():
        if name == "no_grad" and not forecast.evaluated:
            continue
        say(f"forecasting with a change: {text}")
        try:
            recording = record(replace(run.program, change=name, show_output=False), run.card)
            yield _played(name, text, recording, forecast.settings)
        except ForecastError as error:
            yield Change(name, text, problem=f"could not be tried: {error}")


MOST: Final = 12  # forecasts
LARGEST: Final = 1 << 20


def with_batch(program: Program, option: str, size: int) -> Program:
    """The program with this batch size in the place of the one that it was given. `option` ends in "=" where name and value are
    one argument."""
    given = list(program.arguments)
    place, joined = _place(program, option)
    if place is None:
        given += [f"{option}{size}"] if option.endswith("=") else [option, str(size)]
    else:
        given[place] = f"{option.rstrip('=')}={size}" if joined else str(size)
    return replace(program, arguments=tuple(given))


def _place(program: Program, option: str) -> tuple[int | None, bool]:
    """Which argument has the batch size, None where none has, and whether it stands behind the option's name there."""
    name, arguments = option.rstrip("="), program.arguments
    for index, argument in enumerate(arguments):
        if argument == name and not option.endswith("=") and index + 1 < len(arguments):
            return index + 1, False
        if argument.startswith(f"{name}="):
            return index, True
    return None, False


def given_batch(program: Program, option: str) -> int:
    """The batch size that the program was given; 8 where it was given none. Raises ForecastError for one that is no number."""
    place, joined = _place(program, option)
    if place is None:
        return 8
    value = program.arguments[place].partition("=")[2] if joined else program.arguments[place]
    if not value.isdigit() or not int(value):
        raise ForecastError(f"{option.rstrip('=')} was given {value}, which is no batch size")
    return int(value)


def search(program: Program, card: Card, option: str, settings: str | None, say: Say) -> Search:
    """Bisect between what fits and what does not, starting from what the two sizes tried first let expect. A size of which it is
    open does not count as one that fits; one does whose steps fit, though not all was reached. Raises ForecastError."""
    tried: dict[int, Batch] = {}

    def fits(size: int) -> bool:
        if size not in tried:
            say(f"trying {option.rstrip('=')} {size}")
            found = forecast_once(with_batch(program, option, size), card, settings)
            tried[size] = Batch(size, found.process, found.fits)
        return tried[size].fits in ("yes", "unknown")

    size = given_batch(program, option)
    fits(size)
    while len(tried) < MOST:
        good = max((one for one in tried if fits(one)), default=0)
        bad = min((one for one in tried if not fits(one)), default=LARGEST + 1)
        if bad - good <= 1 or good >= LARGEST:
            break
        fits(_next(tried, card, good, bad))
    good = max((one for one in tried if fits(one)), default=0)
    bad = min((one for one in tried if not fits(one)), default=0)
    if good and len(tried) > 2 and len({one.process.value for one in tried.values()}) == 1:
        raise ForecastError(
            f"{option.rstrip('=')} does not change what {program.target} takes; is it the batch size?"
        )
    return Search(option.rstrip("="), good, tuple(tried[one] for one in sorted(tried)), bound=bad != good + 1)


def _next(tried: dict[int, Batch], card: Card, good: int, bad: int) -> int:
    """The size to try: where a line through two of those tried meets the card's memory, within what is open."""
    if len(tried) == 1:
        only = next(iter(tried))
        return min(LARGEST, only * 2) if good else max(1, only // 2)
    (one, a), (other, b) = sorted((size, batch.process.high) for size, batch in tried.items())[-2:]
    slope = (b - a) / (other - one)
    guess = int(other + (card.memory - b) / slope) if slope > 0 else good * 2
    if good in tried and guess <= good:
        guess = good + 1
    if bad <= LARGEST and guess >= bad:
        guess = bad - 1
    guess = min(guess, LARGEST)
    if len(tried) > 4 and bad <= LARGEST:  # the line misleads: halve
        guess = (good + bad) // 2
    return max(good + 1, min(guess, bad - 1))


def forecast(
    target: str | os.PathLike[str],
    arguments: Iterable[str] = (),
    *,
    card: str = "h200",
    module: bool = False,
    steps: int = 20,
    timeout: float | None = 600.0,
    alloc_conf: str | None = None,
    python: str | os.PathLike[str] | None = None,
    find_batch: str | None = None,
    try_changes: bool = False,
    capture: bool = True,
) -> Forecast:
    """Run a script (or, with `module`, what `python -m target` runs) with a faked `card`, and forecast what it would take there.

    `card` is a name such as "h200" or "rtx4090", or a size such as "24GiB". At most `steps` steps are trained in one epoch; after
    `timeout` seconds (None: never) the forecast rests on what was seen. `alloc_conf` are allocator settings, by default those of
    the script or the environment. `find_batch` names the option of the script's that sets its batch size: the result is then that
    of the largest that fits, in `search` with all that were tried. `try_changes` fills `changes`. `capture` keeps the program's
    output to itself. All sizes are in bytes. Raises ForecastError (`gpulint.ForecastError`) where there is no forecast, with the
    reason in one sentence, and ValueError for a card or settings that make no sense.
    """
    if steps < 3:
        raise ValueError("steps must be at least 3")
    chosen = card_for(card)
    interpreter = os.fspath(python) if python is not None else sys.executable
    program = Program(os.fspath(target), tuple(arguments), module, interpreter, steps, timeout, not capture)
    return forecast_with(program, chosen, alloc_conf, find_batch, try_changes, lambda _: None)


def forecast_with(
    program: Program, card: Card, alloc_conf: str | None, find_batch: str | None, try_changes: bool, say: Say
) -> Forecast:
    """The forecast of a program, with the search for its batch and the changes to it that are asked for; `say` is told what is
    run. Raises ForecastError, and ValueError for settings that make no sense."""
    searched = None
    if find_batch is not None:
        searched = search(program, card, find_batch, alloc_conf, say)
        if searched.largest:
            program = with_batch(program, find_batch, searched.largest)
    say(f"running {program.target} with a faked GPU")
    run = recorded(program, card)
    found = replace(judged(run, alloc_conf), search=searched)
    return replace(found, changes=tuple(tried(run, found, say))) if try_changes else found


# -- the card of this machine ------------------------------------------------------------------------------------

_MEASURING: Final = os.path.abspath(os.path.join(__file__, "..", "child", "measuring.py"))
_MEASURED_WITHIN: Final = 300.0  # seconds
_MOST_OF_A_CONTEXT: Final = 4 << 30  # bytes; with all of CUDA's modules loaded it has some 1 GiB


def calibrate(python: str) -> dict[str, Any]:
    """Measure the card of this machine, so that forecasts for it need not take another's constants: its record, as `--card FILE` takes it, with the torch that it was measured with. Raises ForecastError."""
    try:
        done = subprocess.run([python, _MEASURING], capture_output=True, text=True, timeout=_MEASURED_WITHIN)
    except (OSError, subprocess.SubprocessError) as error:
        raise ForecastError(f"the card could not be measured: {error}") from error
    said = done.stderr.strip().splitlines()
    if done.returncode:
        raise ForecastError(
            f"the card could not be measured: {said[-1] if said else 'no reason was given'}", done.stderr
        )
    found = json.loads(done.stdout.splitlines()[-1])
    if not 0 < found["context"] < _MOST_OF_A_CONTEXT:
        raise ForecastError(
            "the card could not be measured: other programs took or gave back memory of it meanwhile; try again when it is idle"
        )
    name = re.sub(r"[^a-z0-9]+", "-", found["label"].lower().removeprefix("nvidia ")).strip("-")
    card = Card.from_json({**found, "name": name, "measured": True})
    return {**card.to_json(), "torch": found["torch"], "held_by_others": found["others"]}

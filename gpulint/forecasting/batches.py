"""The largest batch that fits, found by forecasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gpulint.forecasting.cards import Card
from gpulint.forecasting.forecasting import forecast
from gpulint.forecasting.recorder import ForecastError, Program
from gpulint.forecasting.result import Batch, Search

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


def search(
    program: Program, card: Card, option: str, settings: str | None, say: Callable[[str], None]
) -> Search:
    """Bisect between what fits and what does not, starting from what the two sizes tried first let expect. A size of which it is
    open does not count as one that fits; one does whose steps fit, though not all was reached. Raises ForecastError."""
    tried: dict[int, Batch] = {}

    def fits(size: int) -> bool:
        if size not in tried:
            say(f"trying {option.rstrip('=')} {size}")
            found = forecast(with_batch(program, option, size), card, settings)
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
    if (
        good
        and tried[good].process.value == min(one.process.value for one in tried.values())
        and len(tried) > 2
    ):
        sizes = {one.process.value for one in tried.values()}
        if len(sizes) == 1:
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

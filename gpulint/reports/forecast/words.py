"""A forecast in words, the same in every format."""

from __future__ import annotations

from gpulint.config import shown_path
from gpulint.forecasting.doubts import UNREACHED
from gpulint.forecasting.replaying import Moment
from gpulint.forecasting.result import Change, Figure, Forecast, Search
from gpulint.units import format_bytes

FITS = {
    "yes": "fits",
    "no": "does not fit",
    "open": "may fit or not",
    "unknown": "fits, as far as it was reached",
}
_PHASES = {
    "forward": "in the forward",
    "without_grad": "where no gradients are wanted",
    "backward": "in the backward",
    "optimizer": "in the optimizer's step",
    "kernel": "within an operator",
    "library": "where a library takes its workspace",
    "input": "where data is copied to the card",
}


def verdict(forecast: Forecast) -> str:
    """Whether it fits, in a sentence."""
    room = format_bytes(forecast.card.memory)
    if forecast.fits == "yes" and forecast.process.high <= forecast.card.memory:
        return f"It fits: at most {format_bytes(forecast.process.high)} of {room}"
    if forecast.fits == "yes":
        return f"It fits, closely: the allocator has to give back what it keeps ({room} on the card)"
    if forecast.fits == "unknown":
        places = [place(one.file, one.line) for one in forecast.doubts if one.code == UNREACHED and one.file]
        what = (
            f"{', '.join(places)} was not reached"
            if len(places) == 1
            else f"{', '.join(places)} were not reached"
        )
        seen = f"what was reached takes at most {format_bytes(forecast.process.high)} of {room}"
        return f"Not known whether it fits: {what if places else 'not enough was reached'}; {seen}"
    if forecast.fits == "no":
        return f"It does not fit: at least {format_bytes(forecast.process.low)} are wanted of {room}{_ends(forecast)}"
    return f"It may fit or not: the card's {room} lie within the interval{_ends(forecast)}"


def _ends(forecast: Forecast) -> str:
    where = forecast.out_of_memory
    return "" if where is None else f"; out of memory is to be expected {moment(where)}"


def where(forecast: Forecast) -> str:
    """What was run and how."""
    evaluated = (
        f", {counted(forecast.evaluated, 'evaluation batch', 'evaluation batches')}"
        if forecast.evaluated
        else ""
    )
    seen = f"{counted(forecast.trained, 'step')}{evaluated}"
    return f"on {forecast.card.label}, torch {forecast.torch}, {seen} run with a faked GPU in {forecast.seconds:.0f} s"


def counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def place(file: str, line: int) -> str:
    return f"{shown_path(file)}:{line}" if file else "no line of the script's own"


def moment(at: Moment) -> str:
    """When and where, in words."""
    phase = f" {_PHASES[at.phase]}" if at.phase in _PHASES else ""
    line = f", {place(at.file, at.line)}" if at.file else ""
    if at.kind == "eval" and at.train:
        when = f"in the evaluation after step {at.train}"
        phase = ""
    elif at.kind == "after":
        when = f"after step {at.train}" if at.train else "before the first step ended"
    else:
        when = f"in step {at.train + 1}"
    return f"{when}{phase}{line}"


def figures(forecast: Forecast) -> list[tuple[str, Figure]]:
    return [
        ("peak allocated", forecast.allocated),
        ("peak reserved", forecast.reserved),
        ("process total", forecast.process),
    ]


def interval(figure: Figure) -> str:
    return f"{format_bytes(figure.low)} to {format_bytes(figure.high)}"


def share(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.0f} %"


def change(one: Change, forecast: Forecast) -> str:
    """What a change makes of the peaks."""
    if one.problem:
        return one.problem
    allocated = one.allocated - forecast.allocated.value
    reserved = one.reserved - forecast.reserved.value
    if not allocated and not reserved:
        return "changes nothing"
    return f"allocated {format_bytes(allocated, signed=True)}, reserved {format_bytes(reserved, signed=True)}"


def search(found: Search) -> str:
    """The outcome of a search for the largest batch."""
    name = found.argument
    if not found.largest:
        return f"not even {name} {found.tried[0].size if found.tried else 1} fits"
    if found.bound:
        return f"{name} {found.largest} fits; larger ones were not tried"
    return f"the largest that fits is {name} {found.largest}"


def modules(forecast: Forecast, most: int) -> list[tuple[str, int, str]]:
    """Name, bytes at the peak, and how many there are of those that are alike; the largest first, the rest together."""
    found = forecast.modules
    rows = [(name, size, f"of {number} alike" if number > 1 else "") for name, size, number in found[:most]]
    if len(found) > most:
        left = sum(size for _, size, _ in found[most:])
        rows.append((counted(len(found) - most, "other module"), left, ""))
    return rows

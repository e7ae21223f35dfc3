"""A forecast as a document: whether it fits, the figures with their intervals, memory over the run, what makes the peak, what would
change it, doubts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gpulint.config import shown_path
from gpulint.forecasting.forecasting import UNREACHED
from gpulint.forecasting.replaying import Moment
from gpulint.forecasting.result import Change, Figure, Forecast, Search
from gpulint.reports import plural
from gpulint.reports.document import Cell, Chart, Document, Facts, Plot, Say, Series, Table, remark, section
from gpulint.units import format_bytes
from gpulint.version import __version__

_VERDICTS = {"yes": "good", "no": "bad", "open": "warn", "unknown": "warn"}
_MOST = 8  # rows of a table on a terminal
_NEAR = 0.6  # of what the card leaves, from which on it is drawn
_FITS = {
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


def as_json(forecast: Forecast) -> dict[str, Any]:
    """Everything as plain dicts and lists. `schema` changes when a field changes its meaning."""
    return {"version": __version__, **forecast.to_json()}


def document(forecast: Forecast) -> Document:
    """The whole report."""
    whole = forecast.allocated.value
    figures = {
        "peak allocated": forecast.allocated,
        "peak reserved": forecast.reserved,
        "process total": forecast.process,
    }
    kinds = Table(("Kind", "Size"), [*forecast.kinds.items()], whole=whole)
    lines = [
        (Cell(place(file, line), "mono"), size, ", ".join(made)) for file, line, size, made in forecast.lines
    ]
    modules = [
        (Cell(name, "mono"), size, f"of {number} alike" if number > 1 else "")
        for name, size, number in forecast.modules
    ]
    changes = [(one.text, _change(one, forecast)) for one in forecast.changes]
    doubts = [
        (Cell(place(one.file, one.line) if one.file else "", "mono"), one.text) for one in forecast.doubts
    ]
    return Document(
        f"gpulint forecast: {forecast.target}",
        " ".join([shown_path(forecast.target), *forecast.arguments]),
        where(forecast),
        _VERDICTS[forecast.fits],
        verdict(forecast),
        (
            section(
                "What the figures rest on", Facts(tuple((n, one.rests_on) for n, one in figures.items()))
            ),
            section("Memory over the run", _memory(forecast)),
            section("What makes the peak", Say(f"It is reached {moment(forecast.peak_at)}."), kinds),
            section("The peak by line", Table(("Line", "Size", "Kinds"), lines, _MOST, "other line", whole)),
            section(
                "The peak by module", Table(("Module", "Size", ""), modules, _MOST, "other module", whole)
            ),
            section("The largest batch", _search(forecast.search) if forecast.search is not None else None),
            section("What changes would make of it", Table(("Change", "Forecast by itself"), changes)),
            section("Doubts", Table(("Line", "What is not known"), doubts)),
            section("How it was run", Facts(tuple(_run(forecast))), folded=True),
        ),
        tuple((name, one.value, interval(one)) for name, one in figures.items()),
    )


def _memory(forecast: Forecast) -> Iterator[Chart]:
    """Allocated and reserved after each stretch of events, evaluation in the background, and the card's end where it is near."""
    points = forecast.curve
    if len(points) < 2:
        return
    last = points[-1][0] or 1
    room = forecast.card.memory - forecast.card.context
    near = max(reserved for _, _, reserved in points) >= room * _NEAR
    ends = [event for event, kind in forecast.steps if kind != "eval" or not forecast.evaluated]
    before = [0, *(event for event, _ in forecast.steps)]
    bands = [
        (begin / last, end / last, "eval")
        for begin, (end, kind) in zip(before, forecast.steps, strict=False)
        if kind == "eval" and forecast.evaluated
    ]
    allocated, reserved = [size for _, size, _ in points], [size for _, _, size in points]
    yield Chart(
        f"Memory over the run: at most {format_bytes(forecast.allocated.value)} allocated and "
        f"{format_bytes(forecast.reserved.value)} reserved",
        (
            Series("allocated", "allocated", tuple((at / last, size) for at, size, _ in points), filled=True),
            Series("reserved", "reserved", tuple((at / last, size) for at, _, size in points)),
        ),
        tuple((event / last, f"step {number}") for number, event in enumerate(ends, 1)),
        tuple(bands),
        limit=(room, "what the card leaves beside the context") if near else None,
        note="tinted: evaluation" if bands else "",
        plots=(Plot(allocated, reserved),),
    )


def _search(found: Search) -> Iterator[Say | Table]:
    """The outcome of a search for the largest batch, and what was tried."""
    name = found.argument
    said = f"the largest that fits is {name} {found.largest}"
    if not found.largest:
        said = f"not even {name} {found.tried[0].size if found.tried else 1} fits"
    elif found.bound:
        said = f"{name} {found.largest} fits; larger ones were not tried"
    yield remark(said)
    rows = [
        (str(one.size), one.process.value, interval(one.process), Cell(_FITS[one.fits], _VERDICTS[one.fits]))
        for one in sorted(found.tried, key=lambda one: one.size)
    ]
    yield Table((name, "Process total", "Interval", "Verdict"), rows)


def _run(forecast: Forecast) -> Iterable[tuple[str, str]]:
    card = forecast.card
    known = "of known size, not measured" if card.known else "known by its size alone"
    yield "card", f"{card.label}, {'measured' if card.measured else known}"
    yield "torch", forecast.torch
    yield "Python", forecast.python
    yield "allocator settings", f"`{forecast.settings}`" if forecast.settings else "default"


def verdict(forecast: Forecast) -> str:
    """Whether it fits, in a sentence."""
    room, at = format_bytes(forecast.card.memory), forecast.out_of_memory
    ends = "" if at is None else f"; out of memory is to be expected {moment(at)}"
    if forecast.fits == "yes" and forecast.process.high <= forecast.card.memory:
        return f"It fits: at most {format_bytes(forecast.process.high)} of {room}"
    if forecast.fits == "yes":
        return f"It fits, closely: the allocator has to give back what it keeps ({room} on the card)"
    if forecast.fits == "unknown":
        places = [place(one.file, one.line) for one in forecast.doubts if one.code == UNREACHED and one.file]
        what = f"{', '.join(places)} {'was' if len(places) == 1 else 'were'} not reached"
        seen = f"what was reached takes at most {format_bytes(forecast.process.high)} of {room}"
        return f"Not known whether it fits: {what if places else 'not enough was reached'}; {seen}"
    if forecast.fits == "no":
        return f"It does not fit: at least {format_bytes(forecast.process.low)} are wanted of {room}{ends}"
    return f"It may fit or not: the card's {room} lie within the interval{ends}"


def where(forecast: Forecast) -> str:
    """What was run and how."""
    number = forecast.evaluated
    evaluated = f", {number} evaluation batch{'es' if number > 1 else ''}" if number else ""
    seen = f"{plural(forecast.trained, 'step')}{evaluated}"
    return f"on {forecast.card.label}, torch {forecast.torch}, {seen} run with a faked GPU in {forecast.seconds:.0f} s"


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


def interval(figure: Figure) -> str:
    return f"{format_bytes(figure.low)} to {format_bytes(figure.high)}"


def _change(one: Change, forecast: Forecast) -> Cell:
    """What a change makes of the peaks."""
    if one.problem:
        return Cell(one.problem)
    allocated = one.allocated - forecast.allocated.value
    reserved = one.reserved - forecast.reserved.value
    style = "good" if allocated + reserved < 0 else ""
    if not allocated and not reserved:
        return Cell("changes nothing", style)
    moved = (format_bytes(size, signed=True) for size in (allocated, reserved))
    return Cell("allocated {}, reserved {}".format(*moved), style)

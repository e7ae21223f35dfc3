"""A forecast for people at a terminal: whether it fits, three figures with their intervals, what makes the peak, doubts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TextIO

from gpulint.forecasting.result import Forecast
from gpulint.reports.forecast import words
from gpulint.reports.layout import Line, paint, printable
from gpulint.units import format_bytes

_VERDICTS = {"yes": "good", "no": "error", "open": "warning", "unknown": "warning"}
MOST_LINES = 8


def write(forecast: Forecast, out: TextIO, colour: bool = False, columns: int | None = None) -> None:
    """Write everything. `columns` is the terminal's width, None in a pipe."""
    paint(_lines(forecast, min(columns or 120, 120)), out, colour)


def _lines(forecast: Forecast, columns: int) -> Iterator[Line]:
    called = " ".join([forecast.target, *forecast.arguments])
    yield [(printable(called), "path"), (f": {words.where(forecast)}", "")]
    yield []
    yield from _wrapped(words.verdict(forecast), columns, "", _VERDICTS[forecast.fits])
    yield []
    yield from _figures(forecast, columns)
    yield []
    yield [("The peak is reached ", ""), (words.moment(forecast.peak_at), "strong")]
    yield []
    yield from _table([(kind, size, "") for kind, size in forecast.kinds.items()], forecast.allocated.value)
    yield []
    shown = forecast.lines
    rows = [
        (words.place(file, line), size, ", ".join(kinds)) for file, line, size, kinds in shown[:MOST_LINES]
    ]
    if len(shown) > MOST_LINES:
        left = sum(size for _, _, size, _ in shown[MOST_LINES:])
        rows.append((words.counted(len(shown) - MOST_LINES, "other line"), left, ""))
    yield from _table(rows, forecast.allocated.value)
    if forecast.modules:
        yield []
        yield from _table(words.modules(forecast, MOST_LINES), forecast.allocated.value)
    yield from _search(forecast)
    yield from _changes(forecast)
    if forecast.doubts:
        yield []
        for doubt in forecast.doubts:
            where = f"{words.place(doubt.file, doubt.line)}: " if doubt.file else ""
            yield from _wrapped(f"{where}{doubt.text}", columns, "doubt  ", "warning")


def _figures(forecast: Forecast, columns: int) -> Iterator[Line]:
    figures = words.figures(forecast)
    widest = max(len(words.interval(figure)) for _, figure in figures)
    for name, figure in figures:
        head = f"  {name:<14}  {format_bytes(figure.value):>11}"
        interval = f"  {words.interval(figure):<{widest}}  "
        rest = textwrap.wrap(figure.rests_on, max(30, columns - len(head) - len(interval)))
        for number, line in enumerate(rest):
            if number:
                yield [(" " * (len(head) + len(interval)) + line, "faint")]
            else:
                yield [
                    (f"  {name:<14}  ", ""),
                    (f"{format_bytes(figure.value):>11}", "strong"),
                    (interval, ""),
                    (line, "faint"),
                ]


def _table(rows: list[tuple[str, int, str]], whole: int) -> Iterator[Line]:
    widest = max((len(name) for name, _, _ in rows), default=0)
    for name, size, more in rows:
        yield [
            (f"  {printable(name):<{widest}}  ", ""),
            (f"{format_bytes(size):>11}  {words.share(size, whole):>5}", "strong"),
            (f"  {more}" if more else "", "faint"),
        ]


def _search(forecast: Forecast) -> Iterator[Line]:
    if forecast.search is None:
        return
    yield []
    yield [(words.search(forecast.search), "strong")]
    for one in sorted(forecast.search.tried, key=lambda one: one.size):
        said = words.FITS[one.fits]
        text = f"  {one.size:>6}  {format_bytes(one.process.value):>11}  {words.interval(one.process)}  "
        yield [(text, ""), (said, _VERDICTS[one.fits])]


def _changes(forecast: Forecast) -> Iterator[Line]:
    if not forecast.changes:
        return
    yield []
    yield [("What changes would make of it, each forecast by itself", "strong")]
    widest = max(len(one.text) for one in forecast.changes)
    for one in forecast.changes:
        helps = (
            not one.problem
            and one.allocated + one.reserved < forecast.allocated.value + forecast.reserved.value
        )
        yield [(f"  {one.text:<{widest}}  ", ""), (words.change(one, forecast), "good" if helps else "faint")]


def _wrapped(text: str, columns: int, head: str, style: str) -> Iterator[Line]:
    rest = textwrap.wrap(printable(text), max(40, columns - len(head)), break_long_words=False)
    for number, line in enumerate(rest or [""]):
        if not head:
            yield [(line, style)]
        else:
            yield [(head if not number else " " * len(head), style), (line, "")]

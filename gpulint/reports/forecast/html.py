"""A forecast as one self-contained page: whether it fits, the figures with their intervals, memory over the run, what makes
the peak."""

from __future__ import annotations

from html import escape

from gpulint.config import shown_path
from gpulint.forecasting.result import Figure, Forecast
from gpulint.reports.forecast import words
from gpulint.reports.forecast.curve import figure
from gpulint.reports.verify.page import page, table, ticked
from gpulint.units import format_bytes

_VERDICTS = {"yes": "good", "no": "bad", "open": "warn", "unknown": "warn"}


def write_page(forecast: Forecast) -> str:
    """The whole page."""
    body = [
        _head(forecast),
        _figures(forecast),
        _memory(forecast),
        _peak(forecast),
        _search(forecast),
        _changes(forecast),
    ]
    body += [_doubts(forecast), _run(forecast)]
    return page(f"gpulint forecast: {forecast.target}", body)


def _head(forecast: Forecast) -> str:
    called = " ".join([shown_path(forecast.target), *forecast.arguments])
    return (
        f'<header><h1>{escape(called)}</h1><p class="soft">{escape(words.where(forecast))}</p>'
        f'<p class="banner {_VERDICTS[forecast.fits]}" role="status"><strong>{escape(words.verdict(forecast))}</strong></p>'
        f"{_tiles(forecast)}</header>"
    )


def _tiles(forecast: Forecast) -> str:
    tiles = "".join(
        f"<div><dt>{escape(name.capitalize())}</dt><dd>{format_bytes(one.value)}"
        f"<small>{escape(words.interval(one))}</small></dd></div>"
        for name, one in words.figures(forecast)
    )
    return f'<dl class="figures">{tiles}</dl>'


def _figures(forecast: Forecast) -> str:
    rows = [_row(name, one) for name, one in words.figures(forecast)]
    head = ("", "Forecast", "From", "To", "It rests on")
    return f"<section><h2>Three figures</h2>{table(head, rows, (1, 2, 3))}</section>"


def _row(name: str, one: Figure) -> list[str]:
    return [name, *(format_bytes(size) for size in (one.value, one.low, one.high)), escape(one.rests_on)]


def _memory(forecast: Forecast) -> str:
    drawn = figure(forecast)
    return f"<section><h2>Memory over the run</h2>{drawn}</section>" if drawn else ""


def _peak(forecast: Forecast) -> str:
    whole = forecast.allocated.value
    kinds = [
        [escape(kind), format_bytes(size), words.share(size, whole)] for kind, size in forecast.kinds.items()
    ]
    lines = [
        [f'<span class="mono">{escape(words.place(file, line))}</span>', format_bytes(size), words.share(size, whole),
         escape(", ".join(kinds))]
        for file, line, size, kinds in forecast.lines[:40]
    ]  # fmt: skip
    modules = [
        [
            f'<span class="mono">{escape(name)}</span>',
            format_bytes(size),
            words.share(size, whole),
            escape(more),
        ]
        for name, size, more in words.modules(forecast, 40)
    ]
    by_module = f"<section><h2>The peak by module</h2>{table(('Module', 'Size', 'Share', ''), modules, (1, 2))}</section>"
    return (
        f"<section><h2>What makes the peak</h2><p>It is reached {escape(words.moment(forecast.peak_at))}.</p>"
        f"{table(('Kind', 'Size', 'Share'), kinds, (1, 2))}"
        f"</section><section><h2>The peak by line</h2>{table(('Line', 'Size', 'Share', 'Kinds'), lines, (1, 2))}</section>"
        + (by_module if modules else "")
    )


def _search(forecast: Forecast) -> str:
    if forecast.search is None:
        return ""
    rows = [
        [
            str(one.size),
            format_bytes(one.process.value),
            escape(words.interval(one.process)),
            words.FITS[one.fits],
        ]
        for one in sorted(forecast.search.tried, key=lambda one: one.size)
    ]
    head = (forecast.search.argument, "Process total", "Interval", "Verdict")
    said = escape(words.search(forecast.search).capitalize())
    return f"<section><h2>The largest batch</h2><p>{said}.</p>{table(head, rows, (0, 1))}</section>"


def _changes(forecast: Forecast) -> str:
    if not forecast.changes:
        return ""
    rows = [[ticked(one.text), escape(words.change(one, forecast))] for one in forecast.changes]
    return f"<section><h2>What changes would make of it</h2>{table(('Change', 'Forecast by itself'), rows)}</section>"


def _doubts(forecast: Forecast) -> str:
    if not forecast.doubts:
        return ""
    rows = [
        [
            f'<span class="mono">{escape(words.place(one.file, one.line))}</span>' if one.file else "",
            escape(one.text),
        ]
        for one in forecast.doubts
    ]
    return f"<section><h2>Doubts</h2>{table(('Line', 'What is not known'), rows)}</section>"


def _run(forecast: Forecast) -> str:
    card = forecast.card
    known = (
        "measured"
        if card.measured
        else "of known size, not measured"
        if card.known
        else "known by its size alone"
    )
    rows = [
        ["Card", f"{escape(card.label)}, {known}"],
        ["torch", escape(forecast.torch)],
        ["Python", escape(forecast.python)],
        [
            "Allocator settings",
            f"<code>{escape(forecast.settings)}</code>" if forecast.settings else "default",
        ],
    ]
    return f"<section><details><summary>How it was run</summary>{table(('', ''), rows)}</details></section>"

"""A chart as SVG in a figure: round amounts at the left, words below that keep within the drawing, curves, a legend, and the points
that the page's script shows on hover."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from gpulint.reports.document import Chart, Series, Tip
from gpulint.units import format_bytes

WIDTH, HEIGHT = 960, 280
LEFT, RIGHT, TOP, BOTTOM = 116, 14, 12, 30
MOST_LABELS: Final = (
    6  # below; on a narrow screen, where letters are twice as large, more would run into one another
)
_LINES: Final = 5  # at most
_ROUND: Final = (1, 2, 5, 10, 20, 50, 100, 200, 256, 512)  # of a unit, of which 1,024 are one of the next


def figure(chart: Chart) -> str:
    """A figure element; an empty string where there is no curve to draw."""
    series = [one for one in chart.series if len(one.points) > 1]
    if not series:
        return ""
    low, high = _edges(chart)
    drawn = [_band(*band) for band in chart.bands] + [amounts(high, low), below(chart.below)]
    drawn += [_area(one, low, high) for one in series if one.filled]
    drawn += [_curve(one, low, high) for one in series]
    if chart.limit is not None:
        y = y_of(chart.limit[0], low, high)
        drawn.append(f'<line class="s-peak" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
    drawn += [
        f'<circle class="event" cx="{x_of(at)}" cy="{TOP + 6}" r="4"><title>{escape(said)}</title></circle>'
        for at, said in chart.marks
    ]
    drawn += [
        f'<line class="cursor hidden" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>',
        '<circle class="dot hidden" r="4.5"/>',
    ]
    tips = [{"x": x_of(one.at), "y": y_of(one.height, low, high), "text": one.lines} for one in _tips(chart)]
    moves = ". Arrow keys move along it; the tables have every figure"
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" aria-label="{escape(chart.label + moves)}">'
        f'{"".join(drawn)}</svg><div class="tip hidden" role="status"></div><figcaption>{_legend(chart, series)}</figcaption>'
        f'<script type="application/json">{as_script_json(tips)}</script></figure>'
    )


def as_script_json(data: object) -> str:
    """JSON that may stand inside a script element: no `<`, no line separators."""
    text = json.dumps(data, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _edges(chart: Chart) -> tuple[int, int]:
    """What the lower and the upper edge stand for."""
    values = [value for one in chart.series for _, value in one.points]
    low, high = min(values), max(*values, chart.limit[0] if chart.limit is not None else 0)
    span = high - low
    low = 0 if chart.from_zero or not span or span > high / 4 else max(0, low - span // 4)
    return low, high + max(1, high - low) // 12 + 1


def _tips(chart: Chart) -> Iterator[Tip]:
    """Those of the chart, or the figures of all curves where the first of them has a point."""
    if chart.tips:
        yield from chart.tips
        return
    known = [(one.name, dict(one.points)) for one in chart.series]
    for at, height in chart.series[0].points:
        lines = tuple(f"{name}: {format_bytes(sizes[at])}" for name, sizes in known if at in sizes)
        yield Tip(at, height, lines)


def x_of(part: float) -> float:
    """Where this part of the run, from 0 to 1, is drawn."""
    return round(LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, part), 1)


def y_of(amount: float, low: int, high: int) -> float:
    """Where an amount of bytes is drawn, with `low` at the bottom and `high` at the top."""
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - (amount - low) / (high - low)), 1)


def amounts(high: int, low: int = 0) -> str:
    """A line and its amount at each round number of bytes from `low`, the lower edge, up to `high`."""
    step = next(size for size in _steps() if (high - low) // size < _LINES)
    drawn = []
    for amount in range(-(-low // step) * step, high + 1, step):
        y = y_of(amount, low, high)
        said = format_bytes(amount).replace(".00 ", " ")
        drawn.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        drawn.append(f'<text class="label" x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{said}</text>')
    return "".join(drawn)


def _steps() -> Sequence[int]:
    return [number << unit for unit in range(0, 60, 10) for number in _ROUND]


def below(labels: Sequence[tuple[float, str]]) -> str:
    """Words under the axis, each with the part of the run that it stands at: of many, some at equal distances."""
    every = -(-len(labels) // MOST_LABELS) or 1
    return "".join(
        f'<text class="label" x="{x_of(part)}" y="{HEIGHT - 8}" text-anchor="{_anchor(part)}">{text}</text>'
        for part, text in labels[every - 1 :: every]
    )


def _anchor(part: float) -> str:
    """At the ends a word stands inside of the drawing, not across its edge."""
    return "start" if part < 0.05 else "end" if part > 0.95 else "middle"


def _band(begin: float, end: float, style: str) -> str:
    left, right = x_of(begin), x_of(end)
    return (
        f'<rect class="{style}" x="{left}" y="{TOP}" width="{max(1.0, right - left):.1f}" '
        f'height="{HEIGHT - TOP - BOTTOM}"/>'
    )


def _points(series: Series, low: int, high: int) -> str:
    return " ".join(f"{x_of(at)},{y_of(value, low, high)}" for at, value in series.points)


def _area(series: Series, low: int, high: int) -> str:
    floor, first, last = y_of(low, low, high), x_of(series.points[0][0]), x_of(series.points[-1][0])
    ring = f"{first},{floor} {_points(series, low, high)} {last},{floor}"
    return f'<polygon class="s-area" data-series="{series.style}" points="{ring}"/>'


def _curve(series: Series, low: int, high: int) -> str:
    style = series.style
    return f'<polyline class="s-{style}" data-series="{style}" points="{_points(series, low, high)}"/>'


def _legend(chart: Chart, series: Sequence[Series]) -> str:
    keys = [
        f'<button type="button" class="key c-{one.style}" data-series="{one.style}" aria-pressed="true">'
        f'<span class="swatch"></span>{escape(one.name)}</button>'
        for one in series
    ]
    if chart.limit is not None:
        keys.append(f'<span class="key c-peak"><span class="swatch"></span>{escape(chart.limit[1])}</span>')
    return "".join(keys) + (f"<span>{escape(chart.note)}</span>" if chart.note else "")

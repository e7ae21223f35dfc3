"""Memory over the run of a forecast: allocated and reserved after each stretch of events, steps, and the card's end."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gpulint.forecasting.result import Forecast
from gpulint.units import format_bytes

WIDTH, HEIGHT = 960, 280
LEFT, RIGHT, TOP, BOTTOM = 92, 14, 12, 30
MOST_LABELS = 10


def figure(forecast: Forecast) -> str:
    """A figure element; an empty string where there is nothing to draw."""
    points = forecast.curve
    if len(points) < 2:
        return ""
    room = forecast.card.memory - forecast.card.context
    most = max(reserved for _, _, reserved in points)
    shown = most >= room * 0.6  # the card's end, where it is near
    high = max(most, room if shown else 0) * 13 // 12 + 1
    last = points[-1][0] or 1
    label = (
        f"Memory over the run: at most {format_bytes(forecast.allocated.value)} allocated and "
        f"{format_bytes(forecast.reserved.value)} reserved; the tables have every figure"
    )
    parts = [_bands(forecast, last), _grid(high)]
    parts += [_curve([(x, y) for x, _, y in points], "s-reserved", last, high)]
    parts += [_area([(x, y) for x, y, _ in points], last, high)]
    parts += [_curve([(x, y) for x, y, _ in points], "s-allocated", last, high)]
    parts += [_steps(forecast, last), _end(room, high) if shown else ""]
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
        f"<figcaption>{_legend(shown)}</figcaption></figure>"
    )


def _x(event: float, last: int) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, event / last), 1)


def _y(value: float, high: int) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / high), 1)


def _curve(points: Sequence[tuple[int, int]], style: str, last: int, high: int) -> str:
    joined = " ".join(f"{_x(x, last)},{_y(y, high)}" for x, y in points)
    return f'<polyline class="{style}" points="{joined}"/>'


def _area(points: Sequence[tuple[int, int]], last: int, high: int) -> str:
    floor = _y(0, high)
    joined = " ".join(f"{_x(x, last)},{_y(y, high)}" for x, y in points)
    first, final = _x(points[0][0], last), _x(points[-1][0], last)
    return f'<polygon class="s-area" points="{first},{floor} {joined} {final},{floor}"/>'


def _bands(forecast: Forecast, last: int) -> str:
    """Evaluation steps, as bands behind the curves."""
    before = 0
    parts = []
    for event, kind in forecast.steps:
        if kind == "eval" and forecast.evaluated:
            left, right = _x(before, last), _x(event, last)
            parts.append(
                f'<rect class="eval" x="{left}" width="{max(0.0, right - left):.1f}" y="{TOP}" height="{HEIGHT - TOP - BOTTOM}"/>'
            )
        before = event
    return "".join(parts)


def _grid(high: int) -> str:
    parts = []
    for number in range(5):
        value = high * number / 4
        y = _y(value, high)
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(
            f'<text class="label" x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{format_bytes(value)}</text>'
        )
    return "".join(parts)


def _steps(forecast: Forecast, last: int) -> str:
    """Where training steps end."""
    ends = [event for event, kind in forecast.steps if kind != "eval" or not forecast.evaluated]
    every = max(1, -(-len(ends) // MOST_LABELS))
    return "".join(
        f'<text class="label" x="{_x(event, last)}" y="{HEIGHT - 8}" text-anchor="middle">step {number}</text>'
        for number, event in enumerate(ends, 1)
        if number % every == 0
    )


def _end(room: int, high: int) -> str:
    y = _y(room, high)
    return f'<line class="s-peak" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'


def _legend(shown: bool) -> str:
    keys = [("c-allocated", "allocated"), ("c-reserved", "reserved")]
    keys += [("c-peak", "what the card leaves beside the context")] if shown else []
    return "".join(
        f'<span class="key {style}"><span class="swatch"></span>{text}</span>' for style, text in keys
    )

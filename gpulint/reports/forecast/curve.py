"""Memory over the run of a forecast: allocated and reserved after each stretch of events, steps, and the card's end."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gpulint.forecasting.result import Forecast
from gpulint.reports.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, amounts, below, x_of, y_of
from gpulint.units import format_bytes


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
    parts = [_bands(forecast, last), amounts(high)]
    parts += [_curve([(x, y) for x, _, y in points], "s-reserved", last, high)]
    parts += [_area([(x, y) for x, y, _ in points], last, high)]
    parts += [_curve([(x, y) for x, y, _ in points], "s-allocated", last, high)]
    parts += [_steps(forecast, last), _end(room, high) if shown else ""]
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
        f"<figcaption>{_legend(shown)}</figcaption></figure>"
    )


def _curve(points: Sequence[tuple[int, int]], style: str, last: int, high: int) -> str:
    joined = " ".join(f"{x_of(x / last)},{y_of(y, high)}" for x, y in points)
    return f'<polyline class="{style}" points="{joined}"/>'


def _area(points: Sequence[tuple[int, int]], last: int, high: int) -> str:
    floor = y_of(0, high)
    joined = " ".join(f"{x_of(x / last)},{y_of(y, high)}" for x, y in points)
    first, final = x_of(points[0][0] / last), x_of(points[-1][0] / last)
    return f'<polygon class="s-area" points="{first},{floor} {joined} {final},{floor}"/>'


def _bands(forecast: Forecast, last: int) -> str:
    """Evaluation steps, as bands behind the curves."""
    before = 0
    parts = []
    for event, kind in forecast.steps:
        if kind == "eval" and forecast.evaluated:
            left, right = x_of(before / last), x_of(event / last)
            parts.append(
                f'<rect class="eval" x="{left}" width="{max(0.0, right - left):.1f}" y="{TOP}" height="{HEIGHT - TOP - BOTTOM}"/>'
            )
        before = event
    return "".join(parts)


def _steps(forecast: Forecast, last: int) -> str:
    """Where training steps end."""
    ends = [event for event, kind in forecast.steps if kind != "eval" or not forecast.evaluated]
    return below([(event / last, f"step {number}") for number, event in enumerate(ends, 1)])


def _end(room: int, high: int) -> str:
    y = y_of(room, high)
    return f'<line class="s-peak" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'


def _legend(shown: bool) -> str:
    keys = [("c-allocated", "allocated"), ("c-reserved", "reserved")]
    keys += [("c-peak", "what the card leaves beside the context")] if shown else []
    return "".join(
        f'<span class="key {style}"><span class="swatch"></span>{text}</span>' for style, text in keys
    )

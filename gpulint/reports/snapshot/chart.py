"""Allocated and reserved over a trace as an SVG, with the points that the page's script shows on hover."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from gpulint.reports.axes import BOTTOM, HEIGHT, TOP, WIDTH, amounts, below, x_of, y_of
from gpulint.reports.verify.timeline import as_script_json
from gpulint.snapshot.usage import Point, Usage
from gpulint.units import format_bytes


class _Scale(NamedTuple):
    """From the number of a point and an amount of bytes to the drawing."""

    number: int
    high: int

    def x(self, index: float) -> float:
        return x_of(index / max(1, self.number - 1))

    def y(self, amount: float) -> float:
        return y_of(amount, self.high)


def chart(usage: Usage) -> str:
    """A figure element; an empty string where there is no trace."""
    points = usage.timeline
    if len(points) < 2:
        return ""
    high = max(max(one.allocated, one.reserved) for one in points)
    scale = _Scale(len(points), max(1, high + high // 12))
    allocated = [one.allocated for one in points]
    parts = [
        amounts(scale.high),
        _along(points),
        f'<polygon class="s-area" data-series="allocated" points="{_ring(allocated, scale)}"/>',
        _curve([one.reserved for one in points], scale, "reserved"),
        _curve(allocated, scale, "allocated"),
        _marks(usage, scale),
        f'<line class="cursor hidden" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>',
        '<circle class="dot hidden" r="4.5"/>',
    ]
    tips = [
        {"x": scale.x(number), "y": scale.y(one.allocated), "text": _tip(one)}
        for number, one in enumerate(points)
    ]
    label = (
        f"Memory of device {usage.device} over {usage.events} events: allocated at most {format_bytes(usage.peak_allocated)}, reserved"
        f" at most {format_bytes(usage.peak_reserved)}. Arrow keys move along it."
    )
    return (
        f'<figure class="timeline"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" aria-label="{escape(label)}">'
        f'{"".join(parts)}</svg><div class="tip hidden" role="status"></div><figcaption>{_legend()}</figcaption>'
        f'<script type="application/json">{as_script_json(tips)}</script></figure>'
    )


def _tip(point: Point) -> list[str]:
    return [
        f"after {point.after:.2f} s, event {point.event:,}",
        f"allocated: {format_bytes(point.allocated)}",
        f"reserved: {format_bytes(point.reserved)}",
    ]


def _along(points: Sequence[Point]) -> str:
    """Times under the axis, or the numbers of events where the trace has none."""
    timed, last = points[-1].after > 0, len(points) - 1
    return below(
        [(at / last, f"{one.after:.2f} s" if timed else f"{one.event:,}") for at, one in enumerate(points)]
    )


def _drawn(values: Sequence[int], scale: _Scale) -> str:
    return " ".join(f"{scale.x(number)},{scale.y(value)}" for number, value in enumerate(values))


def _ring(values: Sequence[int], scale: _Scale) -> str:
    base = scale.y(0)
    return f"{scale.x(0)},{base} {_drawn(values, scale)} {scale.x(len(values) - 1)},{base}"


def _curve(values: Sequence[int], scale: _Scale, name: str) -> str:
    return f'<polyline class="s-{name}" data-series="{name}" points="{_drawn(values, scale)}"/>'


def _marks(usage: Usage, scale: _Scale) -> str:
    """Where requests failed."""
    drawn = []
    for oom in usage.ooms[:50]:
        index = oom.event * (scale.number - 1) / max(1, usage.events)
        said = f"out of memory: {format_bytes(oom.asked)} asked for"
        drawn.append(
            f'<circle class="event" cx="{scale.x(index)}" cy="{TOP + 6}" r="4"><title>{said}</title></circle>'
        )
    return "".join(drawn)


def _legend() -> str:
    return "".join(
        f'<button type="button" class="key c-{name}" data-series="{name}" aria-pressed="true">'
        f'<span class="swatch"></span>{name}, at most</button>'
        for name in ("allocated", "reserved")
    )

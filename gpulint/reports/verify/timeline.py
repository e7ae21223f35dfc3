"""The memory timeline of one rank as an SVG, with the points that the page's script shows on hover."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from gpulint.reports.axes import BOTTOM, HEIGHT, LEFT, MOST_LABELS, RIGHT, TOP, WIDTH, amounts, below
from gpulint.runtime.parent.growth import parts_text
from gpulint.runtime.record.result import RankResult, Sample
from gpulint.units import format_bytes

_SERIES = ("allocated", "peak", "reserved")


class _Scale(NamedTuple):
    """From a sample's position and an amount of bytes to the drawing."""

    number: int
    low: int
    high: int

    def x(self, index: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (index / max(1, self.number - 1)), 2)

    def y(self, amount: float) -> float:
        part = (amount - self.low) / max(1, self.high - self.low)
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - part), 1)


def as_script_json(data: object) -> str:
    """JSON that may stand inside a script element: no `<`, no line separators."""
    text = json.dumps(data, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def timeline(rank: RankResult, title: str) -> str:
    """A figure element; an empty string where fewer than two samples know `allocated`."""
    samples = [sample for sample in rank.samples if sample.allocated is not None]
    if len(samples) < 2:
        return ""
    scale = _scale(samples)
    events = _events(samples)
    parts = [
        _bands(samples, scale),
        _grid(samples, scale),
        _area(samples, scale),
        *(_curve(samples, scale, name) for name in ("reserved", "peak", "allocated")),
        _marks(events, scale),
        f'<line class="cursor hidden" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>',
        '<circle class="dot hidden" r="4.5"/>',
    ]
    points = [
        {
            "x": scale.x(i),
            "y": scale.y(s.allocated or 0),
            "text": _tip(s, events.get(i, []), rank.boundary == "none"),
        }
        for i, s in enumerate(samples)
    ]
    what = "sample" if rank.boundary == "none" else "step"
    label = f"{title}: {_said(samples, what)}. Arrow keys move from {what} to {what}; the table below has every figure."
    return (
        f'<figure class="timeline"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
        f'<div class="tip hidden" role="status"></div>'
        f"<figcaption>{_legend(samples)}</figcaption>"
        f'<script type="application/json">{as_script_json(points)}</script></figure>'
    )


def _scale(samples: Sequence[Sample]) -> _Scale:
    values = [value for s in samples for name in _SERIES if (value := getattr(s, name)) is not None]
    low, high = min(values), max(values)
    span = high - low
    low = 0 if not span or span > high / 4 else max(0, low - span // 4)
    return _Scale(len(samples), low, high + max(1, span or high) // 12 + 1)


def _said(samples: Sequence[Sample], what: str) -> str:
    first, last = samples[0].allocated or 0, samples[-1].allocated or 0
    return f"allocated {format_bytes(first)} at the first {what}, {format_bytes(last)} at the last"


def _tip(sample: Sample, events: Sequence[str], by_time: bool) -> list[str]:
    kind = sample.kind if sample.sampled else f"{sample.kind}, warm-up"
    lines = [f"after {sample.seconds:.1f} s" if by_time else f"step {sample.step} ({kind})"]
    names = ("allocated", "peak", "reserved", "host_tensors", "rss")
    for name in names:
        value = getattr(sample, name)
        if value is not None:
            lines.append(f"{name.replace('_', ' ').replace('rss', 'host (RSS)')}: {format_bytes(value)}")
    if sample.parts:
        lines.append(parts_text(sample.parts))
    if not by_time:
        lines.append(f"time: {sample.duration * 1000:.1f} ms")
    return [*lines, *events]


def _events(samples: Sequence[Sample]) -> dict[int, list[str]]:
    """What happened within a step: allocation retries, out-of-memory errors."""
    found: dict[int, list[str]] = {}
    for index in range(1, len(samples)):
        for name, what in (("retries", "allocation retries"), ("ooms", "out-of-memory errors")):
            now, before = getattr(samples[index], name), getattr(samples[index - 1], name)
            if now is not None and before is not None and now > before:
                found.setdefault(index, []).append(f"{now - before} {what}")
    return found


def _bands(samples: Sequence[Sample], scale: _Scale) -> str:
    """Warm-up and evaluation in the background."""

    def runs(chosen: Callable[[Sample], bool], name: str) -> list[str]:
        drawn, start = [], None
        for index in range(len(samples) + 1):
            inside = index < len(samples) and chosen(samples[index])
            if inside and start is None:
                start = index
            elif not inside and start is not None:
                left, right = scale.x(max(0, start - 0.5)), scale.x(min(len(samples) - 1, index - 0.5))
                drawn.append(
                    f'<rect class="{name}" x="{left}" y="{TOP}" width="{max(1.0, right - left):.1f}" '
                    f'height="{HEIGHT - TOP - BOTTOM}"/>'
                )
                start = None
        return drawn

    return "".join([*runs(lambda s: not s.sampled, "warmup"), *runs(lambda s: s.kind == "eval", "eval")])


def _grid(samples: Sequence[Sample], scale: _Scale) -> str:
    last = len(samples) - 1
    chosen = dict.fromkeys(round(last * n / (MOST_LABELS - 1)) for n in range(MOST_LABELS))
    said = [(index / last, f"{samples[index].kind} {samples[index].step}") for index in chosen]
    return amounts(scale.high, scale.low) + below(said)


def _points(samples: Sequence[Sample], scale: _Scale, name: str) -> list[tuple[float, float]]:
    """Where the curve goes: that of allocated up to the peak of each part of a step, and down to what is left at its end."""
    if name == "allocated":
        return [
            (scale.x(i - 1 + (j + 1) / len(heights)), scale.y(height))
            for i, s in enumerate(samples)
            for heights in [_heights(s)[0 if i else -1 :]]
            for j, height in enumerate(heights)
        ]
    return [
        (scale.x(i), scale.y(value)) for i, s in enumerate(samples) if (value := getattr(s, name)) is not None
    ]


def _heights(sample: Sample) -> list[int]:
    return [size for part in sample.parts for size in (part.peak, part.allocated)] or [sample.allocated or 0]


def _curve(samples: Sequence[Sample], scale: _Scale, name: str) -> str:
    points = _points(samples, scale, name)
    if len(points) < 2:
        return ""
    drawn = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline class="s-{name}" data-series="{name}" points="{drawn}"/>'


def _area(samples: Sequence[Sample], scale: _Scale) -> str:
    points = _points(samples, scale, "allocated")
    base = scale.y(scale.low)
    ring = [(points[0][0], base), *points, (points[-1][0], base)]
    drawn = " ".join(f"{x},{y}" for x, y in ring)
    return f'<polygon class="s-area" data-series="allocated" points="{drawn}"/>'


def _marks(events: dict[int, list[str]], scale: _Scale) -> str:
    return "".join(
        f'<circle class="event" cx="{scale.x(index)}" cy="{TOP + 6}" r="4"><title>{escape(", ".join(said))}'
        "</title></circle>"
        for index, said in events.items()
    )


def _legend(samples: Sequence[Sample]) -> str:
    words = {
        "allocated": "allocated, through each backward"
        if any(s.parts for s in samples)
        else "allocated at the step's end",
        "peak": "peak within the step",
        "reserved": "reserved",
    }
    keys = [
        f'<button type="button" class="key c-{name}" data-series="{name}" aria-pressed="true">'
        f'<span class="swatch"></span>{words[name]}</button>'
        for name in _SERIES
        if any(getattr(sample, name) is not None for sample in samples)
    ]
    shaded = [
        word
        for word, there in (
            ("grey: warm-up", any(not s.sampled for s in samples)),
            ("tinted: evaluation", any(s.kind == "eval" for s in samples)),
        )
        if there
    ]
    return "".join(keys) + (f"<span>{', '.join(shaded)}</span>" if shaded else "")

"""Two runs' memory on one plot: allocated at the end of each step, and the peak within it, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gpulint.runtime.record.result import RankResult, RunResult, Sample
from gpulint.units import format_bytes

WIDTH, HEIGHT = 960, 280
LEFT, RIGHT, TOP, BOTTOM = 92, 14, 12, 30
_SERIES = (("peak", "peak within the step"), ("allocated", "allocated at the step's end"))


def figure(before: RunResult, after: RunResult) -> str:
    """A figure element for the rank with the highest peak; an empty string where there is nothing to draw."""
    pair = _telling(before, after)
    if pair is None:
        return ""
    one, two = ([s for s in rank.samples if s.allocated is not None] for rank in pair)
    number = max(len(one), len(two))
    if number < 2:
        return ""
    most = max(max(s.peak or 0, s.allocated or 0) for s in (*one, *two)) or 1
    high = most + most // 12 + 1
    curves = "".join(
        _curve(samples, name, f"{name} {when}", number, high)
        for name, _ in _SERIES
        for samples, when in ((one, "before"), (two, "after"))
    )
    label = f"Memory by step: the highest peak is {format_bytes(_peak(one))} before and {format_bytes(_peak(two))} after"
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{_axes(one if len(one) >= len(two) else two, high)}{curves}</svg>"
        f"<figcaption>{_legend()}</figcaption></figure>"
    )


def _telling(before: RunResult, after: RunResult) -> tuple[RankResult, RankResult] | None:
    pairs = list(zip(before.ranks, after.ranks, strict=False))
    return max(pairs, key=lambda pair: _peak(pair[0].samples)) if pairs else None


def _peak(samples: Sequence[Sample]) -> int:
    return max((s.peak or s.allocated or 0 for s in samples), default=0)


def _x(index: float, number: int) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * index / max(1, number - 1), 1)


def _y(value: float, high: int) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / high), 1)


def _curve(samples: Sequence[Sample], name: str, style: str, number: int, high: int) -> str:
    points = [
        f"{_x(index, number)},{_y(value, high)}"
        for index, sample in enumerate(samples)
        if (value := getattr(sample, name)) is not None
    ]
    return (
        f'<polyline class="t-{style.replace(" ", "-")}" points="{" ".join(points)}"/>'
        if len(points) > 1
        else ""
    )


def _axes(samples: Sequence[Sample], high: int) -> str:
    parts = []
    for number in range(5):
        value = high * number / 4
        y = _y(value, high)
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(
            f'<text class="label" x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{format_bytes(value)}</text>'
        )
    count = min(8, len(samples))
    for number in range(count):
        index = round(number * (len(samples) - 1) / max(1, count - 1))
        sample = samples[index]
        parts.append(
            f'<text class="label" x="{_x(index, len(samples))}" y="{HEIGHT - 8}" text-anchor="middle">'
            f"{sample.kind} {sample.step}</text>"
        )
    return "".join(parts)


def _legend() -> str:
    return "".join(
        f'<span class="key t-key-{name}-{when}"><span class="swatch"></span>{escape(words)}, {when}</span>'
        for name, words in _SERIES
        for when in ("before", "after")
    )

"""Two runs' memory on one plot: allocated at the end of each step, and the peak within it, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gpulint.reports.axes import HEIGHT, WIDTH, amounts, below, x_of, y_of
from gpulint.runtime.record.result import RankResult, RunResult, Sample
from gpulint.units import format_bytes

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


def _curve(samples: Sequence[Sample], name: str, style: str, number: int, high: int) -> str:
    points = [
        f"{x_of(index / max(1, number - 1))},{y_of(value, high)}"
        for index, sample in enumerate(samples)
        if (value := getattr(sample, name)) is not None
    ]
    return (
        f'<polyline class="t-{style.replace(" ", "-")}" points="{" ".join(points)}"/>'
        if len(points) > 1
        else ""
    )


def _axes(samples: Sequence[Sample], high: int) -> str:
    last = max(1, len(samples) - 1)
    return amounts(high) + below([(at / last, f"{one.kind} {one.step}") for at, one in enumerate(samples)])


def _legend() -> str:
    return "".join(
        f'<span class="key t-key-{name}-{when}"><span class="swatch"></span>{escape(words)}, {when}</span>'
        for name, words in _SERIES
        for when in ("before", "after")
    )

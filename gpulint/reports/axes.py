"""The axes of the drawings of memory in the pages: round amounts at the left, a few words below that keep within the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpulint.units import format_bytes

WIDTH, HEIGHT = 960, 280
LEFT, RIGHT, TOP, BOTTOM = 116, 14, 12, 30
MOST_LABELS: Final = (
    6  # below; on a narrow screen, where letters are twice as large, more would run into one another
)
_LINES: Final = 5  # at most
_ROUND: Final = (1, 2, 5, 10, 20, 50, 100, 200, 256, 512)  # of a unit, of which 1,024 are one of the next


def x_of(part: float) -> float:
    """Where this part of the run, from 0 to 1, is drawn."""
    return round(LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, part), 1)


def y_of(amount: float, high: int) -> float:
    """Where an amount of bytes is drawn, with `high` at the top."""
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - amount / high), 1)


def amounts(high: int, low: int = 0) -> str:
    """A line and its amount at each round number of bytes from `low`, the lower edge, up to `high`."""
    step = next(size for size in _steps() if (high - low) // size < _LINES)
    drawn = []
    for amount in range(-(-low // step) * step, high + 1, step):
        y = y_of(amount - low, high - low)
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

"""Small plots out of braille dots, two columns and four rows to a character."""

from __future__ import annotations

from collections.abc import Sequence

from gpulint.reports.document import Plot
from gpulint.reports.layout import Line
from gpulint.units import format_bytes

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
Series = Sequence[int]


def _spread(values: Series, columns: int) -> list[int]:
    """The values over `columns` dots: the largest of those that fall on one, or each one repeated."""
    number = len(values)
    if number >= columns:
        return [
            max(values[i * number // columns : max((i + 1) * number // columns, i * number // columns + 1)])
            for i in range(columns)
        ]
    return [values[min(number - 1, i * number // columns)] for i in range(columns)]


def _cells(values: Series, low: int, high: int, width: int, height: int, filled: bool) -> list[list[int]]:
    """A grid of dot patterns: the curve, or the area below it."""
    grid = [[0] * width for _ in range(height)]
    rows = 4 * height
    previous: int | None = None
    for x, value in enumerate(_spread(values, 2 * width)):
        level = round((value - low) / max(1, high - low) * (rows - 1))
        bottom = 0 if filled else min(level, previous if previous is not None else level)
        top = level if filled else max(level, previous if previous is not None else level)
        for y in range(bottom, top + 1):
            row = rows - 1 - y
            grid[row // 4][x // 2] |= _DOTS[row % 4][x % 2]
        previous = level
    return grid


def plot_lines(plot: Plot, columns: int, height: int = 5) -> list[Line]:
    """With the scale at the left; nothing where there are fewer than two values."""
    allocated, reserved = plot.area, plot.line
    if len(allocated) < 2:
        return []
    both = [*allocated, *reserved]
    high, low = max(both), min(both)
    low = 0 if high == low or high - low > high / 3 else max(0, low - (high - low) // 4)
    if high == low:
        high += 1
    labels = [format_bytes(high), *[""] * (height - 2), format_bytes(low)]
    margin = max(map(len, labels))
    width = max(10, min(columns - margin - 3, max(20, len(allocated))))
    area = _cells(allocated, low, high, width, height, filled=True)
    curve = _cells(reserved, low, high, width, height, filled=False) if reserved else None
    lines: list[Line] = []
    for row in range(height):
        line: Line = [(f"  {labels[row]:>{margin}} ", "faint"), ("┤" if labels[row] else "│", "faint")]
        for x in range(width):
            over = curve[row][x] if curve is not None else 0
            line.append((chr(0x2800 + (area[row][x] | over)), "reserved" if over else "allocated"))
        lines.append(_joined(line))
    gap = " " * max(1, width - len(plot.first) - len(plot.last)) if plot.last else ""
    axis: Line = [(f"{' ' * (margin + 4)}{plot.first}{gap}{plot.last}", "faint")]
    return [*lines, axis] if plot.first else lines


def _joined(line: Line) -> Line:
    """Neighbours of the same style as one span."""
    joined: Line = []
    for text, style in line:
        if joined and joined[-1][1] == style:
            joined[-1] = (joined[-1][0] + text, style)
        else:
            joined.append((text, style))
    return joined

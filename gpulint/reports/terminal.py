"""A document as text: for a terminal in its colours and width, plain in a pipe. The outcome stands at the end, where a terminal is
read first. Plots are made of braille dots, two columns and four rows to a character."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from gpulint.reports.document import (
    Block,
    Card,
    Cell,
    Chart,
    Diff,
    Document,
    Facts,
    Plot,
    Say,
    Section,
    Table,
    Trace,
    sentence,
)
from gpulint.reports.excerpts import excerpt_lines, gutter, headline, margin_of, notes
from gpulint.reports.layout import Line, hanging, paint, printable, quoted, width
from gpulint.source.edits import unified_diff
from gpulint.source.notebooks import is_notebook, read_notebook
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


_LEAST: Final = 30  # columns for the last cell of a row, which is wrapped
_LEAD: Final = re.compile(
    r"allocated|reserved|\d+\. "
)  # of a fact's line: a style's name, or what further lines stand beside
_PLAIN: Final = str.maketrans({"→": "->", "…": "...", "±": "+-"})


def write(document: Document, out: TextIO, colour: bool = False, columns: int | None = None) -> None:
    """Write everything. `columns` is the terminal's width, None in a pipe, where nothing is wrapped."""
    everything = (getattr(out, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
    lines = list(_spaced(_lines(document, columns, everything)))
    if not everything:
        lines = [[(text.translate(_PLAIN), style) for text, style in line] for line in lines]
    paint(lines, out, colour)


def _spaced(lines: Iterator[Line]) -> Iterator[Line]:
    """With one blank line where there are several, and none before the first."""
    blank = True
    for line in lines:
        if line or not blank:
            yield line
        blank = not line


def _lines(document: Document, columns: int | None, plots: bool) -> Iterator[Line]:
    if document.lead:
        yield [(printable(document.subject), "path"), (f": {printable(document.lead)}", "")]
    yield from _table(Table(("", "", ""), document.figures), columns)
    for section in document.sections:
        if not section.folded:
            yield from _section(section, columns, plots)
    yield []
    said = document.closing or sentence(document.headline)
    yield from _said(Say(said, document.style), columns)


def _section(section: Section, columns: int | None, plots: bool) -> Iterator[Line]:
    most = section.most or len(section.blocks)
    inner = [line for block in section.blocks[:most] for line in _block(block, columns, plots)]
    if len(section.blocks) > most:
        inner += [[], [(f"… and {len(section.blocks) - most} more (--report has a page with them)", "faint")]]
    if inner:
        yield []
        if section.title:
            yield [(printable(section.title), "label")]
        yield from inner


def _block(block: Block, columns: int | None, plots: bool) -> Iterator[Line]:
    match block:
        case Table():
            yield from _table(block, columns)
        case Card():
            yield from _card(block, columns)
        case Say():
            yield from _said(block, columns)
        case Facts():
            for name, first, *lines in block.listed:
                yield from hanging(
                    [("  ", ""), (f"{name}: " if first else f"{name}:", "strong")], first, columns
                )
                for line in lines:
                    lead = found[0] if (found := _LEAD.match(line)) else ""
                    yield from hanging([("    ", ""), (lead, lead)], line.removeprefix(lead), columns)
        case Chart() if plots:
            for plot in block.plots:
                yield from [[], *plot_lines(plot, min(columns or 72, 80)), []]
        case Diff():
            yield from diff_lines(block.path, block.before, block.after)
        case Trace():
            yield from ([(printable(line), "")] if line else [] for line in block.text.splitlines())


def _said(said: Say, columns: int | None) -> Iterator[Line]:
    text = printable(" ".join(said.text.split()))
    label, body = (f"{said.label}: ", "") if said.label else ("", said.style)
    wrapped = textwrap.wrap(
        label + text, max(columns, 40), subsequent_indent="  " if label else "", break_on_hyphens=False
    ) if columns else [label + text]  # fmt: skip
    for number, line in enumerate(wrapped):
        lead = len(label) if not number else 0
        yield [(line[:lead], said.style), *quoted(line[lead:], body)]


def _card(card: Card, columns: int | None) -> Iterator[Line]:
    yield []
    where: Line = [
        (f"{printable(card.place)}: " if card.place else "", "path"),
        (f"{card.badge} ", card.style),
    ]
    yield from headline([*where, (f"{card.code} " if card.code else "", "code")], card.text, columns)
    margin, shown = margin_of(card.excerpt), card.excerpt
    if shown is not None and (drawn := excerpt_lines(shown, margin, columns, card.style)):
        yield from [gutter(margin), *drawn, gutter(margin)]
    yield from notes(card.facts, margin, columns)


def _table(table: Table, columns: int | None) -> Iterator[Line]:
    laid = table.laid()
    named = any(laid.head)
    rows = [*([tuple(Cell(name, "faint") for name in laid.head)] if named else []), *laid.rows]
    wide = [max(width(printable(row[at].text)) for row in rows) for at in range(len(laid.head))]
    for row in rows:
        line: Line = []
        for at, cell in enumerate(row):
            text = printable(cell.text)
            lead = "  " + " " * (wide[at] - width(text)) * (at in laid.numbers)
            if at < len(row) - 1:
                line += [(lead, ""), *_styled(text, cell), (" " * (2 + wide[at] - width(lead + text)), "")]
                continue
            taken = sum(width(part) for part, _ in line) + len(lead)
            room = max(columns - taken, _LEAST) if columns else None
            first, *others = textwrap.wrap(text, room, break_on_hyphens=False) or [""] if room else [text]
            yield _stripped([*line, (lead, ""), *_styled(first, cell)])
            yield from ([(" " * taken, ""), *_styled(more, cell)] for more in others)
        for at, cell in enumerate(row):
            margin = " " * (2 * (at + 1) + sum(wide[:at]))
            yield from ([(margin, ""), (printable(more), "faint")] for more in cell.more)


def _styled(text: str, cell: Cell) -> Line:
    return [(text, cell.style)] if cell.style else quoted(text)


def _stripped(line: Line) -> Line:
    """Without blanks at its end."""
    while line and not line[-1][0].strip():
        line.pop()
    return [*line[:-1], (line[-1][0].rstrip(), line[-1][1])] if line else line


def diff_lines(path: str, before: str, after: str) -> Iterator[Line]:
    """The difference between two texts of the file at `path`, as `patch` and `git apply` take it; of a notebook one for each cell, as its
    reader sees it."""
    if not is_notebook(path):
        yield from _diff_lines(unified_diff(before, after, path))
        return
    old, new = read_notebook(before), read_notebook(after)
    for cell, changed in zip(old.cells, new.cells, strict=True):
        if cell.source != changed.source:
            yield from _diff_lines(unified_diff(cell.source, changed.source, f"{path}:cell {cell.number}"))


def _diff_lines(diff: str) -> Iterator[Line]:
    # Only \n ends a line of a diff: a \r belongs to the line before it.
    for line in diff.removesuffix("\n").split("\n") if diff else ():
        yield [(line, _diff_style(line))]


def _diff_style(line: str) -> str:
    if line.startswith("\\"):
        return "faint"
    if line.startswith(("---", "+++")):
        return "strong"
    return {"-": "removed", "+": "added", "@": "code"}.get(line[:1], "")

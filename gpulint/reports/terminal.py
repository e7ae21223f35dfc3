"""A document as text: for a terminal in its colours and width, plain in a pipe. The outcome stands at the end, where a terminal is
read first. Plots are made of braille dots, two columns and four rows to a character."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, TextIO

from gpulint.reports import document as doc
from gpulint.reports.layout import Line, described, hanging, paint, printable, quoted, width
from gpulint.source.edits import unified_diff
from gpulint.source.files import is_notebook
from gpulint.source.notebooks import read_notebook
from gpulint.units import format_bytes

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def _spread(values: Sequence[int], columns: int) -> list[int]:
    """The values over `columns` dots: the largest of those that fall on one, or each one repeated."""
    number = len(values)
    starts = [at * number // columns for at in range(columns + 1)]
    return [max(values[start : max(end, start + 1)]) for start, end in pairwise(starts)]


def _cells(
    values: Sequence[int], low: int, high: int, width: int, height: int, filled: bool
) -> list[list[int]]:
    """A grid of dot patterns: the curve, or the area below it."""
    grid = [[0] * width for _ in range(height)]
    rows = 4 * height
    levels = [round((value - low) / (high - low) * (rows - 1)) for value in _spread(values, 2 * width)]
    for x, (previous, level) in enumerate(zip([levels[0], *levels], levels, strict=False)):
        bottom = 0 if filled else min(previous, level)
        top = level if filled else max(previous, level)
        for y in range(rows - 1 - top, rows - bottom):
            grid[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
    return grid


def plot_lines(plot: doc.Plot, columns: int, height: int = 5) -> list[Line]:
    """With the scale at the left; nothing where there are fewer than two values."""
    if len(plot.area) < 2:
        return []
    both = [*plot.area, *plot.line]
    high, low = max(both), min(both)
    low = 0 if high == low or high - low > high / 3 else max(0, low - (high - low) // 4)
    high = max(high, low + 1)
    labels = [format_bytes(high), *[""] * (height - 2), format_bytes(low)]
    margin = max(map(len, labels))
    width = max(10, min(columns - margin - 3, max(20, len(plot.area))))
    area = _cells(plot.area, low, high, width, height, filled=True)
    over = _cells(plot.line, low, high, width, height, filled=False) if plot.line else [[0] * width] * height
    lines: list[Line] = []
    for label, under, curve in zip(labels, area, over, strict=True):
        line: Line = [(f"  {label:>{margin}} {'┤' if label else '│'}", "faint")]
        for in_curve, run in groupby(zip(under, curve, strict=True), lambda dots: dots[1] > 0):
            drawn = "".join(chr(0x2800 + (area | over)) for area, over in run)
            line.append((drawn, "reserved" if in_curve else "allocated"))
        lines.append(line)
    gap = " " * max(1, width - len(plot.first) - len(plot.last)) if plot.last else ""
    axis: Line = [(f"{' ' * (margin + 4)}{plot.first}{gap}{plot.last}", "faint")]
    return [*lines, axis] if plot.first else lines


# Of a fact's line: a style's name, or what further lines stand beside
_LEAD: Final = re.compile(r"allocated|reserved|\d+\. ")
_PLAIN: Final = str.maketrans({"→": "->", "…": "...", "±": "+-"})


def write(document: doc.Document, out: TextIO, colour: bool = False, columns: int | None = None) -> None:
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


def _lines(document: doc.Document, columns: int | None, plots: bool) -> Iterator[Line]:
    if document.lead:
        yield [(printable(document.subject), "path"), (f": {printable(document.lead)}", "")]
    yield from _table(doc.Table(("", "", ""), document.figures), columns)
    for section in document.sections:
        if not section.folded:
            yield from _section(section, columns, plots)
    yield []
    said = document.closing or doc.sentence(document.headline)
    yield from _said(doc.Say(said, document.style), columns)


def _section(section: doc.Section, columns: int | None, plots: bool) -> Iterator[Line]:
    most = section.most or len(section.blocks)
    inner = [line for block in section.blocks[:most] for line in _block(block, columns, plots)]
    if len(section.blocks) > most:
        inner += [[], [(f"… and {len(section.blocks) - most} more (--report has a page with them)", "faint")]]
    if inner:
        yield []
        if section.title:
            yield [(printable(section.title), "label")]
        yield from inner


def _block(block: doc.Block, columns: int | None, plots: bool) -> Iterator[Line]:
    match block:
        case doc.Table():
            yield from _table(block, columns)
        case doc.Card():
            yield from _card(block, columns)
        case doc.Say():
            yield from _said(block, columns)
        case doc.Facts():
            for name, first, *lines in block.listed:
                named = (f"{name}: " if first else f"{name}:", "strong")
                yield from hanging([("  ", ""), named], first, columns)
                for line in lines:
                    lead = found[0] if (found := _LEAD.match(line)) else ""
                    yield from hanging([("    ", ""), (lead, lead)], line.removeprefix(lead), columns)
        case doc.Chart() if plots:
            for plot in block.plots:
                yield from [[], *plot_lines(plot, min(columns or 72, 80)), []]
        case doc.Diff():
            yield from diff_lines(block.path, block.before, block.after)
        case doc.Trace():
            yield from ([(printable(line), "")] if line else [] for line in block.text.splitlines())


def _said(said: doc.Say, columns: int | None) -> Iterator[Line]:
    text = " ".join(said.text.split())
    if said.label:
        return hanging([(f"{said.label}: ", said.style)], text, columns, indent=2)
    return hanging([], text, columns, style=said.style)


def _card(card: doc.Card, columns: int | None) -> list[Line]:
    where = (f"{printable(card.place)}: " if card.place else "", "path")
    lead = [where, (f"{card.badge} ", card.style), (f"{card.code} " if card.code else "", "code")]
    return [[], *described(lead, card.text, card.excerpt, card.style, card.facts, columns)]


def _table(table: doc.Table, columns: int | None) -> Iterator[Line]:
    laid = table.laid()
    named = any(laid.head)
    rows = [*([tuple(doc.Cell(name, "faint") for name in laid.head)] if named else []), *laid.rows]
    wide = [max(width(printable(row[at].text)) for row in rows) for at in range(len(laid.head))]
    for row in rows:
        line: Line = []
        for at, cell in enumerate(row):
            text = printable(cell.text)
            lead = "  " + " " * (wide[at] - width(text)) * (at in laid.numbers)
            if at == len(row) - 1:
                yield from map(_stripped, hanging([*line, (lead, "")], text, columns, style=cell.style))
            blank = " " * (2 + wide[at] - width(lead + text))
            line += [(lead, ""), *quoted(text, cell.style), (blank, "")]
        for at, cell in enumerate(row):
            margin = " " * (2 * (at + 1) + sum(wide[:at]))
            yield from ([(margin, ""), (printable(more), "faint")] for more in cell.more)


def _stripped(line: Line) -> Line:
    """Without blanks at its end."""
    while line and not line[-1][0].strip():
        line.pop()
    return [*line[:-1], (line[-1][0].rstrip(), line[-1][1])] if line else line


def diff_lines(path: str, before: str, after: str) -> Iterator[Line]:
    """The difference between two texts of the file at `path`, as `patch` and `git apply` take it; of a notebook one for each cell, as its
    reader sees it."""
    if is_notebook(path):
        cells = zip(read_notebook(before).cells, read_notebook(after).cells, strict=True)
        diffs = [unified_diff(old.source, new.source, f"{path}:cell {old.number}") for old, new in cells]
    else:
        diffs = [unified_diff(before, after, path)]
    for diff in filter(None, diffs):
        # Only \n ends a line of a diff: a \r belongs to the line before it.
        for line in diff.removesuffix("\n").split("\n"):
            styles = {"\\": "faint", "-": "removed", "+": "added", "@": "code"}
            yield [(line, "strong" if line.startswith(("---", "+++")) else styles.get(line[:1], ""))]

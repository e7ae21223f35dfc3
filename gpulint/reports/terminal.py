"""A document as text: for a terminal in its colours and width, plain in a pipe. The outcome stands at the end, where a terminal is
read first."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Final, TextIO

from gpulint.reports.diff import diff_lines
from gpulint.reports.document import (
    Block,
    Card,
    Cell,
    Chart,
    Diff,
    Document,
    Facts,
    Say,
    Section,
    Table,
    Trace,
    sentence,
)
from gpulint.reports.excerpts import excerpt_lines, gutter, headline, margin_of, notes
from gpulint.reports.layout import Line, hanging, paint, printable, quoted, width
from gpulint.reports.plot import plot_lines

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

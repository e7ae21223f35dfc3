"""Pieces of text beside a place in a source: its lines with a span underlined, and notes below them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Final

from gpulint.reports.document import Excerpt
from gpulint.reports.layout import Line, printable, quoted, width

LONGEST: Final = 160  # columns of a source line shown, around the span, where there is no terminal
SHORTEST: Final = 40  # on one that has hardly any
_INDENT: Final = "    "  # of a headline's further lines
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
MOST_LINES: Final = 6  # of a span over many lines, and of a fix's preview


def headline(lead: Line, said: str, columns: int | None, times: int = 1) -> list[Line]:
    """A message behind `lead`, broken at words."""
    message = printable(said)
    if columns is None:
        return [[*lead, *quoted(message + (f" × {times}" if times > 1 else ""))]]
    message += f"{_NO_BREAK}×{_NO_BREAK}{times}" if times > 1 else ""
    filled = sum(width(text) for text, _ in lead)
    first, *more = textwrap.wrap(
        message,
        max(columns, SHORTEST),
        initial_indent=" " * filled,
        subsequent_indent=_INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    ) or [""]
    first, *more = (line.replace(_NO_BREAK, " ") for line in (first[filled:], *(line[4:] for line in more)))
    return [[*lead, *quoted(first)], *([(_INDENT, ""), *quoted(line)] for line in more)]


def margin_of(excerpt: Excerpt | None) -> int:
    """The columns that the numbers of the lines take."""
    return len(str(max(excerpt.line, excerpt.end_line))) if excerpt is not None else 2


def gutter(margin: int) -> Line:
    return [(" " * (margin + 1) + "|", "gutter")]


def excerpt_lines(shown: Excerpt, margin: int, columns: int | None, style: str) -> list[Line]:
    """The lines of the span, each with its part underlined."""
    source = shown.source
    if not 1 <= shown.line <= len(source) or not any(source):
        return []
    last = min(max(shown.end_line, shown.line), len(source))
    if last > shown.line and last == shown.end_line and shown.end_column == 1:
        last -= 1  # the span ends with the line before
    rows = list(range(shown.line, last + 1))
    lines: list[Line] = []
    for row in rows:
        if len(rows) > MOST_LINES and MOST_LINES // 2 <= row - rows[0] < len(rows) - MOST_LINES // 2:
            if row - rows[0] == MOST_LINES // 2:
                lines.append([("." * 3, "gutter")])
            continue
        lines += _underlined(shown, row, margin, room(columns, margin + 3), style)
    return lines


def room(columns: int | None, taken: int) -> int:
    """The columns that a line of source may take beside what stands before it."""
    return max(columns - taken, SHORTEST) if columns else LONGEST


def _underlined(shown: Excerpt, row: int, margin: int, room: int, style: str) -> list[Line]:
    line = shown.source[row - 1]
    start = shown.column - 1 if row == shown.line else len(line) - len(line.lstrip())
    end = shown.end_column - 1 if row == shown.end_line else len(line.rstrip())
    start = min(start, len(line))
    end = min(max(end, start), len(line))
    parts = (printable(line[:start]), printable(line[start:end]), printable(line[end:]))
    before, span, after = _window(*parts, room)
    marks = "^" * max(width(span), 1)
    return [
        [(f"{row:>{margin}} | ", "gutter"), (before + span + after, "")],
        [(" " * (margin + 1) + "| ", "gutter"), (" " * width(before), ""), (marks, style)],
    ]


def _window(before: str, span: str, after: str, room: int) -> tuple[str, str, str]:
    """The three parts of a line, cut where the line is too long to show: what one side leaves over the other takes."""
    if width(before + span + after) <= room:
        return before, span, after
    span = cut(span, max(room // 2, room - width(before + after)))
    left = room - width(span)
    half = left // 2
    before = cut(before[::-1], max(half, left - width(after)))[::-1]
    return before, span, cut(after, left - width(before))


def cut(text: str, room: int) -> str:
    """As much of a text as has room, with a sign where more follows."""
    if width(text) <= room:
        return text
    cut = text[: max(room - 1, 0)]
    while cut and width(cut) >= room:
        cut = cut[:-1]
    return cut + "…"


def note(label: str, text: str, margin: int, columns: int | None, widest: int = 7) -> list[Line]:
    """`= reason: …`, its further lines below its first; `widest` is the longest label of its like, with its colon."""
    lead = " " * (margin + 1)
    indent = len(lead) + 3 + widest
    text = printable(text.replace("\n", " "))
    wrapped = (
        textwrap.wrap(text, max(columns - indent, SHORTEST), break_on_hyphens=False) if columns else [text]
    )
    first: Line = [(lead + "= ", "gutter"), (f"{label}:".ljust(widest + 1), "label"), *quoted(wrapped[0])]
    return [first, *([(" " * indent, ""), *quoted(more)] for more in wrapped[1:])]


def notes(facts: Iterable[tuple[str, str]], margin: int, columns: int | None) -> list[Line]:
    """A note for each, their texts below one another."""
    facts = list(facts)
    widest = max((len(label) for label, _ in facts), default=0) + 1
    return [line for label, text in facts for line in note(label, text, margin, columns, widest)]

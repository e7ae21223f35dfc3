"""Lines of styled text, painted plain or, through rich, in colour; how wide text is on a terminal; and the lines of a source with a
span underlined, with notes below them.

A format builds its lines once; the plain way imports nothing.
"""

from __future__ import annotations

import os
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

Span = tuple[str, str]  # text, name of a style below or ""
Line = list[Span]
Columns = int | None  # of a terminal; None in a pipe, where nothing is wrapped
Facts = Sequence[tuple[str, str]]  # what they are called, and say

TAB: Final = 4
LONGEST: Final = 160  # columns of a source line shown, around the span, where there is no terminal
SHORTEST: Final = 30  # on one that has hardly any
MOST_LINES: Final = 6  # of a span over many lines, and of a fix's preview
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_STYLED: Final = {
    "bold bright_red": "error bad",
    "bold yellow": "warning warn",
    "bold cyan": "info code",
    "bold green": "good",
    "bold bright_blue": "label",
    "bold": "path mono strong quoted",
    "dim": "faint mute soft",
    "bright_blue": "gutter",
    "green": "fix added",
    "red": "removed",
    "cyan": "allocated",
    "magenta": "reserved",
}
STYLES: Final = {name: style for style, names in _STYLED.items() for name in names.split()}


def colour_wanted(stream: TextIO, choice: str = "auto") -> bool:
    """Whether to write colours to `stream`: NO_COLOR first, then FORCE_COLOR and CLICOLOR_FORCE, then CLICOLOR=0 and
    whether it is a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb" and os.environ.get("CLICOLOR") != "0"


def links_wanted(stream: TextIO) -> bool:
    """Whether to write links (OSC 8) to `stream`: terminals that do not know them leave them out, bar the oldest."""
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "linux", None)


def paint(lines: Iterable[Line], out: TextIO, colour: bool) -> None:
    """Write the lines. Colour goes through rich."""
    if not colour:
        for line in lines:
            out.write("".join(text for text, _ in line) + "\n")
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out, force_terminal=True, highlight=False, soft_wrap=True, legacy_windows=False)
    for line in lines:
        console.print(Text.assemble(*((part, _in_rich(style)) for part, style in line)))


def _in_rich(style: str) -> str:
    """A style may lead to an address: `error link https://…`."""
    name, *link = style.split(" link ")
    return " link ".join((STYLES.get(name, ""), *link)).strip()


def quoted(message: str, style: str = "") -> Line:
    """A message whose `code` between backticks stands out."""
    parts = message.split("`")
    if len(parts) % 2 == 0:
        return [(message, style)]
    return [
        (f"`{part}`", "quoted") if number % 2 else (part, style) for number, part in enumerate(parts) if part
    ]


def hanging(
    lead: Line, said: str, columns: Columns, indent: int | None = None, style: str = "", whole: bool = False
) -> Iterator[Line]:
    """Text behind `lead`, broken at words where `columns` are the terminal's; its further lines stand below its first, or are indented
    as told. A word that is longer than a line is broken unless words stay `whole`."""
    filled = sum(width(text) for text, _ in lead)
    indent = filled if indent is None else indent
    text = printable(said)
    lines = []
    if columns is not None:
        wide, margins = max(columns, indent + SHORTEST), (" " * filled, " " * indent)
        wrapper = textwrap.TextWrapper(wide, *margins, break_on_hyphens=False, break_long_words=not whole)
        lines = wrapper.wrap(text)
    yield [*lead, *quoted(lines[0][filled:] if lines else text, style)]
    for line in lines[1:]:
        yield [(" " * indent, ""), *quoted(line[indent:], style)]


def printable(text: str) -> str:
    """`text` without anything that would move a terminal's cursor or change its state; tabs become blanks."""
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(letter: str) -> str:
    if letter == "\t":
        return " " * TAB
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    joins = letter in "\N{ZERO WIDTH JOINER}\N{VARIATION SELECTOR-16}"
    return letter if joins or unicodedata.category(letter) in ("Zs", "Co") else "\N{REPLACEMENT CHARACTER}"


def width(text: str) -> int:
    """The columns that printable `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a source, from line and column to line and column, as findings count them."""

    source: Sequence[str]
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def margin(self) -> int:
        """The columns that the numbers of its lines take."""
        return len(str(max(self.line, self.end_line)))


def described(
    lead: Line, said: str, excerpt: Excerpt | None, style: str, facts: Facts, columns: Columns, times: int = 1
) -> list[Line]:
    """A message behind `lead`, and how many times it is said, the part of the source that it is about, and a note for each fact."""
    message = said + (f"{_NO_BREAK}×{_NO_BREAK}{times}" if times > 1 else "")
    lines = [
        [(text.replace(_NO_BREAK, " "), style) for text, style in line]
        for line in hanging(lead, message, columns, indent=4, whole=True)
    ]
    margin = excerpt.margin if excerpt is not None else 2
    if excerpt is not None and (drawn := _excerpt_lines(excerpt, margin, columns, style)):
        gutter: Line = [(" " * (margin + 1) + "|", "gutter")]
        lines += [gutter, *drawn, *([gutter] if facts else [])]
    widest = max((len(label) + 1 for label, _ in facts), default=0)
    return lines + [line for fact in facts for line in note(*fact, margin, columns, widest)]


def _excerpt_lines(shown: Excerpt, margin: int, columns: Columns, style: str) -> list[Line]:
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


def room(columns: Columns, taken: int) -> int:
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


def note(label: str, text: str, margin: int, columns: Columns, widest: int = 0) -> Iterator[Line]:
    """`= reason: …`, its further lines below its first; `widest` is the longest label of its like, with its colon. Without a label it goes
    on with what the note before says."""
    widest = max(widest, len("reason:"))
    lead: Line = [(" " * (margin + 1) + "= ", "gutter"), (f"{label}:".ljust(widest + 1), "label")]
    if not label:
        lead = [(" " * (margin + 1 + 2 + widest + 1), "")]
    return hanging(lead, text.replace("\n", " "), columns)

"""A report as data: what it says, in sections of tables, findings, facts and charts. A command builds one from its result;
`terminal`, `page` and `markdown` each write any.

Text may have `code` between backticks. A style is "good", "bad", "warn", "info", "mute" or "soft".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gpulint.config import shown_path
from gpulint.reports import plural
from gpulint.reports.layout import Excerpt
from gpulint.source.sources import Sources
from gpulint.units import format_bytes

MORE_ON_A_PAGE: Final = 5  # times as many rows of a table as on a terminal
_NUMBER: Final = re.compile(r"[-+]?\d[\d.,]* ?([%\w]*|[\w]+ ± .*)")


def sentence(text: str) -> str:
    """With a capital and a full stop, where it has neither."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a table: a badge where it has a style, `code` for what is read letter by letter; `more` lines below it."""

    text: str
    style: str = ""
    more: tuple[str, ...] = ()


Value = str | int | Cell  # an int is bytes


@dataclass(frozen=True, slots=True)
class Laid:
    """A table as it is written: its cells, and which columns are numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: frozenset[int]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below a head, `most` of them, 0 for all; what `others` are called stands in place of those left out. Where there is a
    `whole`, the first bytes of each row are a share of it, and those of the others are summed."""

    head: Sequence[str]
    rows: Sequence[Sequence[Value]]
    most: int = 0
    others: str = ""
    whole: int = 0

    def laid(self, times: int = 1) -> Laid:
        """With `times` as many rows; columns without any text are left out."""
        head, most = list(self.head), times * self.most or len(self.rows)
        rows, left = [list(row) for row in self.rows[:most]], self.rows[most:]
        sized = next((at for at, value in enumerate(rows[0]) if isinstance(value, int)), 0) if rows else 0
        if left and self.others:
            rest: list[Value] = [""] * len(head)
            named = next(at for at, value in enumerate(rows[0]) if isinstance(value, Cell))
            rest[named] = plural(len(left), self.others)
            if self.whole:
                rest[sized] = sum(size for row in left if isinstance(size := row[sized], int))
            rows.append(rest)
        if self.whole:
            head.insert(sized + 1, "Share")
            for row in rows:
                size = row[sized]
                row.insert(sized + 1, f"{size / self.whole:.1%}" if isinstance(size, int) else "")
        cells = [[_cell(value) for value in row] for row in rows]
        kept = [at for at in range(len(head)) if any(row[at].text for row in cells)]
        numbers = {new for new, at in enumerate(kept) if _is_numeric([row[at] for row in cells])}
        return Laid(
            tuple(head[at] for at in kept),
            tuple(tuple(row[at] for at in kept) for row in cells),
            frozenset(numbers),
        )


def _cell(value: Value) -> Cell:
    text = format_bytes(value) if isinstance(value, int) else value
    return text if isinstance(text, Cell) else Cell(text)


def _is_numeric(column: Sequence[Cell]) -> bool:
    said = [cell.text for cell in column if cell.text]
    return bool(said) and 2 * sum(_NUMBER.fullmatch(text) is not None for text in said) >= len(said)


@dataclass(frozen=True, slots=True)
class Say:
    """A paragraph, with a word before it where it has a label."""

    text: str
    style: str = ""
    label: str = ""


def remark(text: str, style: str = "", label: str = "") -> Say:
    """A paragraph of one sentence."""
    return Say(sentence(text), style, label)


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what is said of each, in one line or in several; the first is "" where all stand below the name."""

    listed: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """Text whose lines stay as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    """What becomes of a file."""

    path: str
    before: str
    after: str


def whole_line(sources: Sources, file: str, line: int) -> Excerpt | None:
    """One line of a file, without its indentation; None where there is no such line."""
    source = sources.lines(file) if file else []
    if not 1 <= line <= len(source):
        return None
    text = source[line - 1]
    return Excerpt(source, line, len(text) - len(text.lstrip()) + 1, line, len(text.rstrip()) + 1)


@dataclass(frozen=True, slots=True)
class Card:
    """A thing at a place: what it is called, in a badge, and said to be, with facts about it."""

    badge: str
    style: str
    place: str
    text: str
    facts: tuple[tuple[str, str], ...] = ()
    code: str = ""
    excerpt: Excerpt | None = None
    diff: Diff | None = None


def card_at(
    sources: Sources, file: str, line: int, badge: str, style: str, text: str, *facts: tuple[str, str]
) -> Card:
    """A card about a line, with its source; facts of which there is nothing to be said are left out."""
    place = f"{shown_path(file)}:{line}" if file and line else ""
    told = tuple((name, said) for name, said in facts if said)
    return Card(badge, style, place, text, told, excerpt=whole_line(sources, file, line))


@dataclass(frozen=True, slots=True)
class Series:
    """A curve: its name in the legend, points from 0 to 1 along the axis with their bytes; an area below it where `filled`."""

    style: str
    name: str
    points: tuple[tuple[float, int], ...]
    filled: bool = False


def curve(style: str, name: str, sizes: Sequence[int | None], last: int = 0, filled: bool = False) -> Series:
    """A curve over sizes at equal distances, those that are not known left out; the axis ends at the place `last`, or at their end."""
    last = last or max(1, len(sizes) - 1)
    points = ((at / last, size) for at, size in enumerate(sizes) if size is not None)
    return Series(style, name, tuple(points), filled)


@dataclass(frozen=True, slots=True)
class Tip:
    """What is told of a place along a chart, beside the first series at this height."""

    at: float
    height: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """What a terminal draws for a chart: an area and a line over it, with words below their ends."""

    area: Sequence[int]
    line: Sequence[int] = ()
    first: str = ""
    last: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Memory over time, told by `label` to who does not see it. `below` are words under the axis, `bands` are from where to where
    and how styled, `marks` stand above it, `limit` is a line across."""

    label: str
    series: tuple[Series, ...]
    below: tuple[tuple[float, str], ...] = ()
    bands: tuple[tuple[float, float, str], ...] = ()
    marks: tuple[tuple[float, str], ...] = ()
    limit: tuple[int, str] | None = None
    tips: tuple[Tip, ...] = ()
    note: str = ""
    plots: tuple[Plot, ...] = ()
    from_zero: bool = True


Block = Table | Say | Facts | Trace | Diff | Card | Chart


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a title, at most `most` of them on a terminal, 0 for all. One that is folded is closed on a page, and not on a
    terminal."""

    title: str
    blocks: tuple[Block, ...]
    folded: bool = False
    most: int = 0


def section(
    title: str, *blocks: Block | Iterable[Block] | None, folded: bool = False, most: int = 0
) -> Section:
    """A section of blocks, those that there are, one by one or together."""
    listed = ((one,) if isinstance(one, Block) else one for one in blocks if one is not None)
    return Section(title, tuple(block for some in listed for block in some), folded, most)


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report: what it is about and where it ran, the outcome in a sentence, `closing` with more of it for a terminal's last
    line, the main figures each with a note, and the rest."""

    title: str
    subject: str
    lead: str
    style: str
    headline: str
    sections: tuple[Section, ...]
    figures: tuple[tuple[str, Value, str], ...] = ()
    closing: str = ""

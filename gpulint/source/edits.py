"""Text and edits, without a syntax tree: rows and columns, applying fixes, diffs.

A row ends at ``\\n``, ``\\r\\n`` or ``\\r`` and nowhere else: form feeds and Unicode line separators are
ordinary characters here, as they are to Python. A byte order mark at the start of a text has no column.
"""

from __future__ import annotations

import difflib
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpulint.findings import Edit, Finding, Position

BOM = "\ufeff"
_NEWLINE = re.compile(r"\r\n?|\n")
_HEADER = re.compile(r":[ \t]*(?:\r\n?|\n)[ \t]*$")
_BLANK = re.compile(r"[ \t]*")


class LineIndex:
    """Positions and offsets of one text, in both directions."""

    __slots__ = ("size", "starts")

    def __init__(self, text: str) -> None:
        # The first line starts after the mark, so that nothing is ever put in front of it.
        first = 1 if text.startswith(BOM) else 0
        self.starts = [first, *(match.end() for match in _NEWLINE.finditer(text))]
        self.size = len(text)

    def position(self, offset: int) -> Position:
        """Row and column, both from 1, of an offset into the text."""
        row = max(1, bisect_right(self.starts, offset))
        return Position(row, max(1, offset - self.starts[row - 1] + 1))

    def offset(self, position: Position) -> int:
        """The inverse of `position`. Raises ValueError for a place outside the text."""
        if not 1 <= position.row <= len(self.starts) or position.column < 1:
            raise ValueError(f"There is no row {position.row}, column {position.column} in this text.")
        start = self.starts[position.row - 1]
        offset = start + position.column - 1
        end = self.starts[position.row] if position.row < len(self.starts) else self.size
        if offset > end:
            raise ValueError(f"There is no row {position.row}, column {position.column} in this text.")
        return offset

    def line_start(self, offset: int) -> int:
        """The offset of the first character of the line that `offset` is on."""
        return self.starts[max(1, bisect_right(self.starts, offset)) - 1]

    def next_line(self, offset: int) -> int:
        """The offset after the line end of the line that `offset` is on (the text's size on its last
        line)."""
        row = max(1, bisect_right(self.starts, offset))
        return self.starts[row] if row < len(self.starts) else self.size

    def starts_between(self, start: int, end: int) -> Sequence[int]:
        """The line starts s with start <= s < end."""
        return self.starts[bisect_left(self.starts, start) : bisect_left(self.starts, end)]


def line_end(text: str, offset: int) -> str:
    """The line end at `offset`: ``\\n``, ``\\r\\n``, ``\\r``, or nothing."""
    match = _NEWLINE.match(text, offset)
    return match.group() if match else ""


@dataclass(frozen=True, slots=True)
class _Span:
    """An edit in offsets. A pure insertion has start == end."""

    start: int
    end: int
    content: str

    def same_insertion(self, other: _Span) -> bool:
        """Two findings ask for the same new lines at the same place: one suffices (an import, a `del`)."""
        return self == other and self.start == self.end and "\n" in self.content.replace("\r", "\n")


@dataclass(frozen=True, slots=True)
class _Deepened:
    """Lines that a fix puts under a new header. What another fix writes there would not be deep enough."""

    start: int
    end: int
    indent: int

    def rejects(self, span: _Span) -> bool:
        content = span.content.replace("\r", "\n")
        if "\n" not in content or not self.start <= span.start <= self.end:
            return False
        if span.start < self.end or span.end > span.start:
            return True
        line = content.lstrip("\n")
        return len(line) - len(line.lstrip(" \t")) > self.indent


def _deepened(text: str, spans: Sequence[_Span]) -> list[_Deepened]:
    """What a fix puts under headers: from the header, new lines that end in a colon, to the empty edit behind it."""
    found: list[_Deepened] = []
    headers: list[int] = []
    for span in spans:
        if _HEADER.search(span.content):
            headers.append(span.start)
        elif not span.content and span.start == span.end:
            start = headers[0] if headers else found[-1].start if found else 0
            blank = _BLANK.match(text, start)
            found.append(_Deepened(start, span.end, len(blank.group()) if blank else 0))
            headers.clear()
    return found


def _clash(left: _Span, right: _Span, at_line_start: bool) -> bool:
    """Whether two edits of different fixes must not be applied in the same pass."""
    if left.start == left.end and right.start == right.end:
        return left.start == right.start and bool(left.content) and bool(right.content)
    if left.start == left.end or right.start == right.end:
        point, span = (left, right) if left.start == left.end else (right, left)
        if not point.content:
            return span.start < point.start < span.end
        # New lines may follow a removed line; text put right after a replaced expression belonged to that
        # expression.
        return span.start <= point.start < span.end or (point.start == span.end and not at_line_start)
    return left.start < right.end and right.start < left.end


class _Accepted:
    """The edits taken so far in one pass, sorted by start and free of clashes."""

    def __init__(self, text: str, index: LineIndex) -> None:
        self.spans: list[_Span] = []
        self._starts: list[int] = []
        self._line_starts = frozenset(index.starts)
        self._text = text
        self._deepened: list[_Deepened] = []

    def _near(self, span: _Span) -> Iterable[_Span]:
        # Accepted spans do not overlap, so of those that begin before this one, only the last few can reach
        # it.
        first = max(0, bisect_left(self._starts, span.start) - 2)
        for other in self.spans[first:]:
            if other.start > span.end:
                return
            yield other

    def take(self, spans: Sequence[_Span]) -> bool:
        """Accept all of a fix's edits, or none of them."""
        deepened = _deepened(self._text, spans)
        if any(region.rejects(span) for region in self._deepened for span in spans):
            return False
        if any(region.rejects(span) for region in deepened for span in self.spans):
            return False
        fresh: list[_Span] = []
        for span in spans:
            near = list(self._near(span))
            if any(span.same_insertion(other) for other in near):
                continue
            if any(_clash(span, other, self._at_line_start(span, other)) for other in near):
                return False
            fresh.append(span)
        for span in fresh:
            place = bisect_right(self._starts, span.start)
            # An insertion stands before a replacement that begins where it does.
            while place and self._starts[place - 1] == span.start and span.start == span.end:
                place -= 1
            self._starts.insert(place, span.start)
            self.spans.insert(place, span)
        self._deepened += deepened
        return True

    def _at_line_start(self, left: _Span, right: _Span) -> bool:
        point = left if left.start == left.end else right
        return point.start in self._line_starts


def apply_edits(text: str, findings: Iterable[Finding], unsafe: bool) -> tuple[str, list[Finding]]:
    """Apply the fixes of `findings` in one pass and return the new text and the findings whose fix is in it.

    Fixes are taken in the order of the findings' positions. One that overlaps a fix already taken is left out
    as a whole; equal fixes, and equal new lines at one place, are applied once. `unsafe` also takes unsafe
    fixes. Raises ValueError for an edit outside the text.
    """
    index = LineIndex(text)
    accepted = _Accepted(text, index)
    taken: dict[tuple[Edit, ...], bool] = {}
    applied: list[Finding] = []
    for finding in sorted(findings, key=lambda found: found.sort_key):
        fix = finding.fix
        if fix is None or not fix.edits or not fix.applies(unsafe):
            continue
        if fix.edits not in taken:
            taken[fix.edits] = accepted.take(_spans(index, fix.edits))
        if taken[fix.edits]:
            applied.append(finding)
    return _rewrite(text, accepted.spans), applied


def rewritten(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits of one fix, which are sorted and do not overlap."""
    return _rewrite(text, _spans(LineIndex(text), edits))


def _spans(index: LineIndex, edits: Iterable[Edit]) -> list[_Span]:
    return [_Span(index.offset(one.start), index.offset(one.end), one.content) for one in edits]


def _rewrite(text: str, spans: Iterable[_Span]) -> str:
    pieces: list[str] = []
    done = 0
    for span in spans:
        pieces += (text[done : span.start], span.content)
        done = span.end
    pieces.append(text[done:])
    return "".join(pieces)


def unified_diff(old: str, new: str, filename: str) -> str:
    """A diff that ``git apply`` and ``patch -p1`` take, with line ends kept and a last line without one
    marked."""
    name = filename.replace(os.sep, "/").lstrip("/")  # a backslash is a sign like others but on Windows
    lines: list[str] = []
    before, after = (_quoted_as_git_does(f"{side}/{name}") for side in "ab")
    for line in difflib.unified_diff(_diff_lines(old), _diff_lines(new), before, after):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines)


def _quoted_as_git_does(name: str) -> str:
    """A file name in a diff: `"a/\\033[1m.py"` where it is more than a name to who reads it."""
    if name.isprintable() and '"' not in name and "\\" not in name:
        return name
    signs = (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}" for byte in os.fsencode(name))
    return '"' + "".join(f"\\{sign}" if sign in ('"', "\\") else sign for sign in signs) + '"'


def _diff_lines(text: str) -> list[str]:
    # Diff tools split at \n only; a \r stays part of its line.
    return [line for line in re.split(r"(?<=\n)", text) if line]

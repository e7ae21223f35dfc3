"""A text as an editor sees it: places in the units that client and server have agreed on, changes, differences.

The protocol counts lines and units from 0, gpulint rows and characters from 1. Lines end at ``\\n``, ``\\r\\n`` and
``\\r`` for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final

from lsprotocol import types

from gpulint.findings import Position
from gpulint.source.edits import BOM, LineIndex

# Above so many changed lines a difference is one replacement: finding out more takes quadratic time.
_MAX_COMPARED: Final = 2_000


def _utf8(characters: str) -> int:
    return len(characters.encode("utf-8", "surrogatepass"))


def _utf16(characters: str) -> int:
    return len(characters) + sum(character > "\uffff" for character in characters)


_COUNTERS: Final[dict[str, Callable[[str], int]]] = {"utf-8": _utf8, "utf-16": _utf16, "utf-32": len}


class Text:
    """One state of a document. `encoding` is ``utf-8``, ``utf-16`` or ``utf-32``: what `character` counts."""

    def __init__(self, content: str, encoding: str) -> None:
        self.content = content
        self.encoding = encoding
        self.units = _COUNTERS[encoding]

    @cached_property
    def _index(self) -> LineIndex:
        return LineIndex(self.content)

    @cached_property
    def _starts(self) -> list[int]:
        """Where lines start for an editor, to which a byte order mark is a character."""
        return [0, *self._index.starts[1:]]

    def line(self, number: int) -> str:
        """The line with this number, from 0, without its end; nothing beyond the last one."""
        if not 0 <= number < len(self._starts):
            return ""
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self.content)
        line = self.content[self._starts[number] : end]
        return line.removesuffix("\n").removesuffix("\r")

    def place(self, position: Position) -> types.Position:
        """A finding's row and column as the client counts them; the nearest place where there is no such row or column."""
        if position.row > len(self._starts):
            return self._at(len(self.content))
        first = BOM if position.row == 1 and self.content.startswith(BOM) else ""
        line = self.line(position.row - 1)
        before = line[: len(first) + position.column - 1]
        return types.Position(position.row - 1, self.units(before))

    def column(self, place: types.Position) -> int:
        """The character, from 0, of its line that a client's place is on."""
        line = self.line(place.line)
        if line.isascii() or self.encoding == "utf-32":
            return min(place.character, len(line))
        passed = 0
        for number, character in enumerate(line):
            passed += self.units(character)
            if passed > place.character:
                return number
        return len(line)

    def offset(self, place: types.Position) -> int:
        """The offset into `content` of a client's place; places beyond a line or the text are at its end."""
        if place.line >= len(self._starts):
            return len(self.content)
        return self._starts[place.line] + self.column(place)

    def changed(self, change: types.TextDocumentContentChangeEvent) -> Text:
        """The text after one change: of a part, or of everything."""
        if not isinstance(change, types.TextDocumentContentChangePartial):
            return Text(change.text, self.encoding)
        start, end = self.offset(change.range.start), self.offset(change.range.end)
        return Text(self.content[:start] + change.text + self.content[max(start, end) :], self.encoding)

    def edits_to(self, content: str) -> list[types.TextEdit]:
        """The changes of lines that turn this text into `content`."""
        ours, theirs = self.content.splitlines(True), content.splitlines(True)
        return [
            types.TextEdit(self._range(len("".join(ours[:first])), len("".join(ours[:last]))), new)
            for first, last, new in _changes(ours, theirs)
        ]

    def _range(self, start: int, end: int) -> types.Range:
        return types.Range(self._at(start), self._at(end))

    def _at(self, offset: int) -> types.Position:
        row = self._index.position(offset).row
        return types.Position(row - 1, self.units(self.content[self._starts[row - 1] : offset]))


def _changes(old: list[str], new: list[str]) -> Iterator[tuple[int, int, str]]:
    """The first and the line after the last of what is replaced in `old`, and by what."""
    head = _common(zip(old, new, strict=False))
    tail = _common(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(left) + len(right) > _MAX_COMPARED:
        yield head, head + len(left), "".join(right)
        return
    for tag, first, last, start, end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            yield head + first, head + last, "".join(right[start:end])


def _common(pairs: Iterable[tuple[str, str]]) -> int:
    count = 0
    for left, right in pairs:
        if left != right:
            break
        count += 1
    return count

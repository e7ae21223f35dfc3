"""Jupyter notebooks as files: which cells there are, and how a changed cell is put back.

Of the JSON only a changed cell's source is written anew, from its first change to its last: indentation, order of keys, escapes,
outputs and the line end at the end stay as they are.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from gpulint.source.edits import LineIndex
from gpulint.source.files import TextError

_BETWEEN: Final = re.compile(r"[ \t\r\n:,]*")
_DECODE: Final = json.JSONDecoder().raw_decode
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
# One character of a text as JSON spells it. Two escapes of a surrogate pair are one character.
_SPELLED: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\u(?!00[01])[0-9a-fA-F]{4}")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


class NotebookError(TextError):
    """The text is no notebook. `line` and `column` count in the JSON."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell in Python. `number` counts all cells from 1; `start` and `end` enclose its source in the JSON."""

    number: int
    source: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook's JSON and its code cells, in order. `foreign` says why there is nothing to check in it."""

    text: str
    cells: tuple[Cell, ...] = ()
    foreign: str = ""

    def cell(self, number: int) -> Cell | None:
        """The code cell with this number."""
        return next((cell for cell in self.cells if cell.number == number), None)

    def file_row(self, number: int, row: int) -> int:
        """The row of the JSON where a row of the cell with this number is spelled; 1 where there is no such cell."""
        cell = self.cell(number)
        if cell is None:
            return 1
        rows, places = LineIndex(cell.source).starts, _Spelling(self.text, cell).starts
        start = rows[min(max(row, 1), len(rows)) - 1]
        place = places[min(start, len(places) - 1)] if places else cell.start
        return LineIndex(self.text).position(place).row

    def rewritten(self, sources: Mapping[int, str]) -> str:
        """The JSON with other sources for the cells with these numbers."""
        text = self.text
        for cell in reversed(self.cells):
            if sources.get(cell.number, cell.source) != cell.source:
                text = (
                    text[: cell.start] + _respelled(self.text, cell, sources[cell.number]) + text[cell.end :]
                )
        return text


# Reading


def read_notebook(text: str) -> Notebook:
    """The notebook that `text` spells. Raises `NotebookError`."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        what = "the file is empty" if not text.strip() else f"invalid JSON: {error.msg}"
        raise NotebookError(f"not a notebook: {what}", error.lineno, error.colno) from None
    except RecursionError:
        raise NotebookError("not a notebook: its JSON is nested too deeply") from None
    except ValueError:  # Python's limit on digits
        raise NotebookError("not a notebook: its JSON has a number of thousands of digits") from None
    start = _beyond(text, 0)
    if not isinstance(data, dict):
        raise _wrong(text, start, "its JSON is no object")
    cells = (
        tuple(_cells(text, dict(_members(text, start))["cells"], data["cells"])) if "cells" in data else None
    )
    version = data.get("nbformat")
    if "worksheets" in data or (isinstance(version, int) and version < 4):
        return Notebook(text, foreign="a notebook of format 3 or older; opening and saving it converts it")
    if cells is None:
        raise NotebookError("not a notebook: it has no cells")
    language = _language(data.get("metadata"))
    if language and language.casefold() not in ("python", "ipython", "python3"):
        return Notebook(text, foreign=f"a notebook in {language}, not in Python")
    return Notebook(text, cells)


def _cells(text: str, at: int, cells: Any) -> Iterator[Cell]:
    """The code cells in Python of a list that stands at `at`."""
    if not isinstance(cells, list):
        raise _wrong(text, at, "its cells are no list")
    for number, ((_, start), cell) in enumerate(zip(_members(text, at), cells, strict=True), 1):
        if not isinstance(cell, dict):
            raise _wrong(text, start, "a cell is no object")
        is_code = cell.get("cell_type") == "code"
        if "source" not in cell:
            if is_code:
                raise _wrong(text, start, f"cell {number} has no source")
            continue
        place, source = dict(_members(text, start))["source"], cell["source"]
        if isinstance(source, list) and all(isinstance(part, str) for part in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise _wrong(text, place, "a cell's source is neither text nor lines")
        if is_code and _is_python_cell(cell.get("metadata")):
            yield Cell(number, source, place, _DECODE(text, place)[1])


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Key of each member of the object at `at`, and where its value begins; of a list without keys. The text is known to be JSON."""
    closing = "}" if text[at] == "{" else "]"
    at, key = _beyond(text, at + 1), ""
    while text[at] != closing:
        if closing == "}":
            key, at = _DECODE(text, at)
            at = _beyond(text, at)
        yield key, at
        at = _beyond(text, _DECODE(text, at)[1])


def _beyond(text: str, at: int) -> int:
    """Where the next value begins, or what is around it ends."""
    between = _BETWEEN.match(text, at)
    return between.end() if between else at


def _wrong(text: str, at: int, what: str) -> NotebookError:
    place = LineIndex(text).position(at)
    return NotebookError(f"not a notebook: {what}", place.row, place.column)


def _language(metadata: Any) -> str:
    """The language that a notebook's metadata name, or nothing."""
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        inner = metadata.get(table) if isinstance(metadata, dict) else None
        name = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(name, str) and name:
            return name
    return ""


def _is_python_cell(metadata: Any) -> bool:
    """Whether an editor has not marked a code cell as one in another language."""
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = editor.get("languageId") if isinstance(editor, dict) else None
    return not isinstance(language, str) or language == "python"


# Writing


class _Spelling:
    """How the JSON spells a cell's source: where each character begins and ends, and what stands around them: before the first, within
    a string nothing, the end of one string and the start of the next between two of a list, after the last."""

    def __init__(self, text: str, cell: Cell) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        at = cell.start
        while (string := _STRING.search(text, at, cell.end)) is not None:
            at = string.end()
            for letter in _SPELLED.finditer(text, string.start() + 1, at - 1):
                self.starts.append(letter.start())
                self.ends.append(letter.end())
        places = zip([cell.start, *self.ends], [*self.starts, cell.end], strict=True)
        self.gaps = [text[end:start] for end, start in places]


def _respelled(text: str, cell: Cell, source: str) -> str:
    """The JSON of a cell's source after it has become `source`: what both begin and end with alike is spelled as it was."""
    old, is_list = _Spelling(text, cell), text[cell.start] == "["
    plain = not (text.isascii() and _ESCAPED.search(text))
    if not old.starts or not source:
        fresh: Any = source.splitlines(keepends=True) if is_list else source
        return json.dumps(fresh, ensure_ascii=not plain)
    between = ""
    if is_list:  # from one line to the next
        usual = Counter(filter(None, old.gaps[1:-1])).most_common(1)
        between = usual[0][0] if usual else f'",{old.gaps[0][1:-1] or " "}"'
    head = len(os.path.commonprefix((cell.source, source)))
    tail = len(os.path.commonprefix((cell.source[head:][::-1], source[head:][::-1])))
    new, rest = source[head : len(source) - tail], len(old.starts) - tail
    made = [old.gaps[0]]
    pieces = [(line, json.dumps(line, ensure_ascii=not plain)[1:-1]) for line in _LINE.findall(new)]
    if head:
        pieces.insert(0, (source[:head], text[old.starts[0] : old.ends[head - 1]]))
    if tail:
        pieces.append((source[-tail:], text[old.starts[rest] : old.ends[-1]]))
    for (line, _), (_, after) in pairwise([("", ""), *pieces]):
        made.append(f"{between}{after}" if line.endswith("\n") else after)
    return "".join((*made, old.gaps[-1]))

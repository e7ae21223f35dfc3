"""The documents that the editor has open, in pygls' workspace, as an editor sees them: places in the units that client and server have
agreed on, changes, differences. Notebooks come as their cells, which are put together as the JSON that gpulint reads.

The protocol counts lines and units from 0, gpulint rows and characters from 1. Lines end at ``\\n``, ``\\r\\n`` and ``\\r`` for both; pygls' own
documents split them where Python's `str` does (at form feeds, at U+2028), which moves every place behind them.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate
from os.path import commonprefix
from typing import Any, Final
from urllib.parse import unquote

from lsprotocol import types
from pygls.uris import to_fs_path, uri_scheme
from pygls.workspace import PositionCodec, Workspace

from gpulint.findings import Position
from gpulint.source.edits import BOM, LineIndex
from gpulint.source.files import NOTEBOOK_SUFFIX
from gpulint.source.shell import is_settings_file

# Above so many changed lines a difference is one replacement: finding out more takes quadratic time.
_MAX_COMPARED: Final = 2_000


class Text:
    """One state of a document. `encoding` is ``utf-8``, ``utf-16`` or ``utf-32``: what `character` counts."""

    def __init__(self, content: str, encoding: str) -> None:
        self.content = content
        self.encoding = encoding
        self.units: Callable[[str], int] = PositionCodec(encoding).client_num_units

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
        starts = [*accumulate(map(len, ours), initial=0)]
        return [
            types.TextEdit(types.Range(self._at(starts[first]), self._at(starts[last])), new)
            for first, last, new in _changes(ours, theirs)
        ]

    def _at(self, offset: int) -> types.Position:
        row = self._index.position(offset).row
        return types.Position(row - 1, self.units(self.content[self._starts[row - 1] : offset]))


def _changes(old: list[str], new: list[str]) -> Iterator[tuple[int, int, str]]:
    """The first and the line after the last of what is replaced in `old`, and by what."""
    head = len(commonprefix([old, new]))
    tail = len(commonprefix([old[head:][::-1], new[head:][::-1]]))
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(left) + len(right) > _MAX_COMPARED:
        yield head, head + len(left), "".join(right)
        return
    for tag, first, last, start, end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            yield head + first, head + last, "".join(right[start:end])


PYTHON: Final = "python"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One state of an open document. `path` is None for what is not checked by itself: other languages, and the cells of
    the notebook with the URI `notebook`. An untitled document has a path that no file has."""

    uri: str
    path: str | None
    version: int | None
    text: Text
    language: str = PYTHON
    notebook: str | None = None

    @property
    def content(self) -> str:
        return self.text.content

    @property
    def is_python(self) -> bool:
        return self.notebook is not None or (self.path is not None and not is_settings_file(self.path))


@dataclass(frozen=True, slots=True, eq=False)
class Book:
    """One state of a notebook: its cells, and which of them are code. Cells are numbered from 1, as in findings."""

    uri: str
    path: str | None
    cells: tuple[tuple[Document, bool], ...]

    @property
    def content(self) -> str:
        """The notebook's JSON, without outputs."""
        cells = [
            {
                "cell_type": "code" if is_code else "markdown",
                "metadata": {"vscode": {"languageId": cell.language}},
                "source": cell.content,
            }
            for cell, is_code in self.cells
        ]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})

    def number(self, cell: Document) -> int:
        """The number of a cell; 0 where it is not in this state of the notebook."""
        return next((place for place, (other, _) in enumerate(self.cells, 1) if other is cell), 0)

    def cell(self, number: int) -> Document:
        """The inverse of `number`. Raises IndexError."""
        return self.cells[number - 1][0]

    def sources(self, content: str) -> Iterator[tuple[Document, str]]:
        """The cells with their sources in `content`, which is this notebook's JSON after fixing."""
        fixed: list[dict[str, Any]] = json.loads(content)["cells"]
        for (cell, _), told in zip(self.cells, fixed, strict=True):
            source = told["source"]
            yield cell, source if isinstance(source, str) else "".join(source)


# What is checked in one go.
Unit = Document | Book


class Documents(Workspace):
    """The open documents in their newest state. `buffers` has their bytes by absolute path, for files that import them. `closed` is
    told of each document and cell that no longer is."""

    def __init__(self, root: str, encoding: str, closed: Callable[[Document], None]) -> None:
        super().__init__(None, position_encoding=encoding)
        self._closed = closed
        self.buffers: dict[str, bytes] = {}
        self._root = root
        self._encoding = encoding
        self._open: dict[str, Document] = {}
        self._books: dict[str, Book] = {}

    def get(self, uri: str) -> Document | None:
        """A document, or a cell of a notebook."""
        return self._open.get(unquote(uri))

    def unit(self, uri: str) -> Unit | None:
        """What is checked with the document, cell or notebook with this URI."""
        document = self.get(uri)
        if document is None or document.notebook is not None:
            return self._books.get(unquote(uri if document is None else document.notebook or ""))
        return document

    def units(self) -> list[Unit]:
        plain = [document for document in self._open.values() if document.notebook is None]
        return [*plain, *self._books.values()]

    def book_of(self, document: Document) -> Book | None:
        """The notebook that a cell is part of."""
        return None if document.notebook is None else self._books.get(unquote(document.notebook))

    def at(self, path: str) -> Document | None:
        """The open document of the file at `path`."""
        return next((document for document in self._open.values() if document.path == path), None)

    # --- what pygls calls ----------------------------------------------------------------------------------------

    def put_text_document(
        self, text_document: types.TextDocumentItem, notebook_uri: str | None = None
    ) -> None:
        item = text_document
        path = checked_path(item.uri, item.language_id, self._root) if notebook_uri is None else None
        text = Text(item.text, self._encoding)
        self._keep(Document(item.uri, path, item.version, text, item.language_id, notebook_uri))

    def update_text_document(
        self, text_doc: types.VersionedTextDocumentIdentifier, change: types.TextDocumentContentChangeEvent
    ) -> None:
        document = self.get(text_doc.uri)
        if document is None:
            _log.warning("a change of %s, which is not open", text_doc.uri)
            return
        self._keep(replace(document, version=text_doc.version, text=document.text.changed(change)))

    def remove_text_document(self, doc_uri: str) -> None:
        document = self._open.pop(unquote(doc_uri), None)
        if document is not None:
            self.buffers.pop(document.path or "", None)
            self._closed(document)

    def put_notebook_document(self, params: types.DidOpenNotebookDocumentParams) -> None:
        super().put_notebook_document(params)
        self._bind(params.notebook_document.uri)

    def update_notebook_document(self, params: types.DidChangeNotebookDocumentParams) -> None:
        uri, cells = params.notebook_document.uri, params.change.cells
        if self.get_notebook_document(notebook_uri=uri) is None:
            return
        if cells is not None and (structure := cells.structure) is not None:
            # A cell that was moved is closed and opened
            moved = {cell.document for cell in structure.array.cells or ()}
            structure.did_close = [one for one in structure.did_close or () if one.uri not in moved]
        super().update_notebook_document(params)
        self._bind(uri)

    def remove_notebook_document(self, params: types.DidCloseNotebookDocumentParams) -> None:
        super().remove_notebook_document(params)
        self._books.pop(unquote(params.notebook_document.uri), None)

    def _bind(self, uri: str) -> None:
        notebook = self.get_notebook_document(notebook_uri=uri)
        known = [(self.get(cell.document), cell.kind) for cell in notebook.cells] if notebook else []
        cells = ((cell, kind == types.NotebookCellKind.Code) for cell, kind in known if cell is not None)
        path = checked_path(uri, PYTHON, self._root, notebook=True)
        self._books[unquote(uri)] = Book(uri, path, tuple(cells))

    def _keep(self, document: Document) -> None:
        self._open[unquote(document.uri)] = document
        if document.path is not None:
            self.buffers[document.path] = document.content.encode("utf-8", "surrogatepass")


def checked_path(uri: str, language: str, root: str, notebook: bool = False) -> str | None:
    """The absolute path under which a document is checked; None where it is not: other languages, a notebook's JSON, what
    a version control system shows. An untitled document counts as a file in `root`."""
    scheme = uri_scheme(uri)
    if scheme == "untitled":
        name = os.path.basename(unquote(uri).removeprefix("untitled:").replace("\\", "/")) or "untitled"
        if notebook and not name.endswith(NOTEBOOK_SUFFIX):
            name += NOTEBOOK_SUFFIX
        return os.path.join(root, name) if language == PYTHON else None
    path = to_fs_path(uri) if scheme == "file" else None
    if not path or "\0" in path:  # of no file
        return None
    path = os.path.normpath(path)
    if notebook or path.endswith(NOTEBOOK_SUFFIX):
        return path if notebook and path.endswith(NOTEBOOK_SUFFIX) else None
    is_python = path.endswith(".py") or (language == PYTHON and not path.endswith(".pyi"))
    return path if is_python or is_settings_file(path) else None

"""The documents that the editor has open. pygls keeps some too, but splits lines where Python's `str` does (at form feeds,
at U+2028), which moves every place behind them. Notebooks come as their cells, which are put together as the JSON that gpulint
reads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote

from lsprotocol import types
from pygls.uris import to_fs_path, uri_scheme

from gpulint.server.text import Text
from gpulint.source.notebooks import SUFFIX as NOTEBOOK_SUFFIX
from gpulint.source.shell import is_settings_file

PYTHON: Final = "python"


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


class Documents:
    """The open documents in their newest state. `buffers` has their bytes by absolute path, for files that import them."""

    def __init__(self, root: str, encoding: str) -> None:
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

    def opened(self, item: types.TextDocumentItem) -> Document:
        path = checked_path(item.uri, item.language_id, self._root)
        return self._keep(self._document(item, path, None))

    def changed(
        self,
        identifier: types.VersionedTextDocumentIdentifier,
        changes: Iterable[types.TextDocumentContentChangeEvent],
    ) -> Document | None:
        """The document after the changes, which apply one after another; None where it is not open."""
        document = self.get(identifier.uri)
        if document is None:
            return None
        text = document.text
        for change in changes:
            text = text.changed(change)
        return self._keep(replace(document, version=identifier.version, text=text))

    def closed(self, uri: str) -> Document | None:
        document = self._open.pop(unquote(uri), None)
        if document is not None and document.path is not None:
            self.buffers.pop(document.path, None)
        return document

    # --- notebooks -----------------------------------------------------------------------------------------------

    def book_opened(self, params: types.DidOpenNotebookDocumentParams) -> Book:
        notebook = params.notebook_document
        for item in params.cell_text_documents:
            self._keep(self._document(item, None, notebook.uri))
        return self._bind(
            notebook.uri,
            [(cell.document, cell.kind == types.NotebookCellKind.Code) for cell in notebook.cells],
        )

    def book_changed(
        self, params: types.DidChangeNotebookDocumentParams
    ) -> tuple[Book | None, list[Document]]:
        """The notebook after its changes, None where it is not open; and the cells that are gone."""
        uri = params.notebook_document.uri
        book = self._books.get(unquote(uri))
        cells = params.change.cells
        if book is None or cells is None:
            return book, []
        order = [(cell.uri, is_code) for cell, is_code in book.cells]
        gone: list[Document] = []
        if cells.structure is not None:
            order, gone = self._rearranged(uri, order, cells.structure)
        kinds = {data.document: data.kind == types.NotebookCellKind.Code for data in cells.data or ()}
        for content in cells.text_content or ():
            self.changed(content.document, content.changes)
        return self._bind(uri, [(cell, kinds.get(cell, is_code)) for cell, is_code in order]), gone

    def book_closed(self, uri: str) -> list[Document]:
        """The cells of a notebook that is closed."""
        book = self._books.pop(unquote(uri), None)
        cells = [cell for cell, _ in book.cells] if book is not None else []
        for cell in cells:
            self.closed(cell.uri)
        return cells

    def _rearranged(
        self,
        uri: str,
        order: list[tuple[str, bool]],
        structure: types.NotebookDocumentCellChangeStructure,
    ) -> tuple[list[tuple[str, bool]], list[Document]]:
        array = structure.array
        new = [(cell.document, cell.kind == types.NotebookCellKind.Code) for cell in array.cells or ()]
        order = [*order[: array.start], *new, *order[array.start + array.delete_count :]]
        left = {cell for cell, _ in order}  # a cell that was moved is closed and opened
        closed = [self.closed(item.uri) for item in structure.did_close or () if item.uri not in left]
        for item in structure.did_open or ():
            self._keep(self._document(item, None, uri))
        return order, [cell for cell in closed if cell is not None]

    def _bind(self, uri: str, order: list[tuple[str, bool]]) -> Book:
        cells = [(self.get(cell), is_code) for cell, is_code in order]
        path = checked_path(uri, PYTHON, self._root, notebook=True)
        book = Book(uri, path, tuple((cell, is_code) for cell, is_code in cells if cell is not None))
        self._books[unquote(uri)] = book
        return book

    def _document(self, item: types.TextDocumentItem, path: str | None, notebook: str | None) -> Document:
        text = Text(item.text, self._encoding)
        return Document(item.uri, path, item.version, text, item.language_id, notebook)

    def _keep(self, document: Document) -> Document:
        self._open[unquote(document.uri)] = document
        if document.path is not None:
            self.buffers[document.path] = document.content.encode("utf-8", "surrogatepass")
        return document


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

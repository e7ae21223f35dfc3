"""The documents that the editor has open. pygls keeps some too, but splits lines where Python's `str` does (at form feeds,
at U+2028), which moves every place behind them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from lsprotocol import types
from pygls.uris import to_fs_path, uri_scheme

from gpulint.analysis.shell import is_settings_file
from gpulint.server.text import Text

PYTHON: Final = "python"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One state of an open document. `path` is None for what is not checked; an untitled one has a path that no file has."""

    uri: str
    path: str | None
    version: int | None
    text: Text

    @property
    def is_python(self) -> bool:
        return self.path is not None and not is_settings_file(self.path)


class Documents:
    """The open documents in their newest state. `buffers` has their bytes by absolute path, for files that import them."""

    def __init__(self, root: str, encoding: str) -> None:
        self.buffers: dict[str, bytes] = {}
        self._root = root
        self._encoding = encoding
        self._open: dict[str, Document] = {}

    def get(self, uri: str) -> Document | None:
        return self._open.get(unquote(uri))

    def all(self) -> list[Document]:
        return list(self._open.values())

    def at(self, path: str) -> Document | None:
        """The open document of the file at `path`."""
        return next((document for document in self._open.values() if document.path == path), None)

    def opened(self, item: types.TextDocumentItem) -> Document:
        path = checked_path(item.uri, item.language_id, self._root)
        return self._keep(Document(item.uri, path, item.version, Text(item.text, self._encoding)))

    def changed(self, params: types.DidChangeTextDocumentParams) -> Document | None:
        """The document after the changes, which apply one after another; None where it is not open."""
        document = self.get(params.text_document.uri)
        if document is None:
            return None
        text = document.text
        for change in params.content_changes:
            text = text.changed(change)
        return self._keep(replace(document, version=params.text_document.version, text=text))

    def closed(self, uri: str) -> Document | None:
        document = self._open.pop(unquote(uri), None)
        if document is not None and document.path is not None:
            self.buffers.pop(document.path, None)
        return document

    def _keep(self, document: Document) -> Document:
        self._open[unquote(document.uri)] = document
        if document.path is not None:
            self.buffers[document.path] = document.text.content.encode("utf-8", "surrogatepass")
        return document


def checked_path(uri: str, language: str, root: str) -> str | None:
    """The absolute path under which a document is checked; None where it is not: other languages, notebook cells, what a
    version control system shows. An untitled document counts as a file in `root`."""
    scheme = uri_scheme(uri)
    if scheme == "untitled":
        name = os.path.basename(unquote(uri).removeprefix("untitled:").replace("\\", "/")) or "untitled"
        return os.path.join(root, name) if language == PYTHON else None
    path = to_fs_path(uri) if scheme == "file" else None
    if not path:
        return None
    path = os.path.normpath(path)
    is_python = path.endswith(".py") or (language == PYTHON and not path.endswith((".pyi", ".ipynb")))
    return path if is_python or is_settings_file(path) else None

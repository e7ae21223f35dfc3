"""The newest result for each open document: computed once, shared by all who ask, dropped when the document moves on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from gpulint.server.documents import Document, Documents
from gpulint.server.engine import Checked, Engine
from gpulint.server.worker import Worker


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    document: Document
    result: asyncio.Future[Checked | None]


class Checks:
    """Results by document. All methods are called from the event loop; the engine runs in the worker's thread."""

    def __init__(self, documents: Documents, engine: Engine, worker: Worker) -> None:
        self._documents = documents
        self._engine = engine
        self._worker = worker
        self._entries: dict[str, _Entry] = {}

    async def of(self, uri: str) -> tuple[Document, Checked] | None:
        """The newest state of a document and its findings; None where it is not open.

        Waits until both fit: results for text that is no longer there are never given.
        """
        while (document := self._documents.get(uri)) is not None:
            entry = self._entry(document)
            result = await asyncio.shield(entry.result)
            if self._entries.get(document.uri) is entry and self._documents.get(uri) is document:
                return document, result or Checked()
        return None

    def forget(self, uri: str) -> None:
        """What was found is no longer certain: the next who asks has it checked anew."""
        self._entries.pop(uri, None)

    def dependents(self, path: str) -> list[Document]:
        """Open documents whose last findings rest on the file at `path`."""
        return [
            document
            for document in self._documents.all()
            if path in self._dependencies(document) and document.path != path
        ]

    def _dependencies(self, document: Document) -> frozenset[str]:
        entry = self._entries.get(document.uri)
        if entry is None or not entry.result.done() or entry.result.exception() is not None:
            return frozenset()
        result = entry.result.result()
        return result.dependencies if result is not None else frozenset()

    def _entry(self, document: Document) -> _Entry:
        entry = self._entries.get(document.uri)
        if entry is None or entry.document is not document:
            future = self._worker.submit(lambda: self._check(document))
            entry = self._entries[document.uri] = _Entry(document, asyncio.wrap_future(future))
        return entry

    def _check(self, document: Document) -> Checked | None:
        """In the worker: nothing where the document has changed while this waited for its turn."""
        if document.path is None or self._documents.get(document.uri) is not document:
            return None
        return self._engine.check(document.path, document.text.content)

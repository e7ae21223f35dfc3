"""The newest result for each open document: computed once, shared by all who ask, dropped when the document moves on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from gpulint.server.documents import Book, Document, Documents, Unit
from gpulint.server.engine import Checked, Engine
from gpulint.server.worker import Worker

if TYPE_CHECKING:
    from gpulint.lint.explaining import Explained

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Found:
    """A document or cell as it is now, the findings in it, and those in all of what it was checked with."""

    document: Document
    checked: Checked
    whole: Checked


@dataclass(slots=True, eq=False)
class _Entry:
    unit: Unit
    result: asyncio.Future[Checked]
    explained: asyncio.Future[tuple[Explained, ...]] | None = None  # once somebody has asked


class Checks:
    """Results by document, and by notebook for all of its cells. All methods are called from the event loop; the engine runs in the worker's thread."""

    def __init__(self, documents: Documents, engine: Engine, worker: Worker) -> None:
        self._documents = documents
        self._engine = engine
        self._worker = worker
        self._entries: dict[str, _Entry] = {}

    async def of(self, uri: str) -> Found | None:
        """The newest state of a document or cell and the findings in it; None where it is not open.

        Waits until both fit: results for text that is no longer there are never given.
        """
        while (unit := self._documents.unit(uri)) is not None:
            entry = self._entry(unit)
            whole = await asyncio.shield(entry.result)
            document = self._documents.get(uri)
            if document is None:
                return None
            if self._entries.get(unit.uri) is entry and self._documents.unit(uri) is unit:
                inside = whole.in_cell(unit.number(document)) if isinstance(unit, Book) else whole
                return Found(document, inside, whole)
        return None

    async def explained(self, uri: str) -> tuple[Explained, ...]:
        """What is considered in a document or cell; nothing where it has moved on meanwhile."""
        unit = self._documents.unit(uri)
        if unit is None:
            return ()
        entry = self._entry(unit)
        if entry.explained is None:
            entry.explained = self._ask(unit, self._engine.explained, ())
        claims = await asyncio.shield(entry.explained)
        document = self._documents.get(uri)
        if document is None or self._documents.unit(uri) is not unit:
            return ()
        cell = unit.number(document) if isinstance(unit, Book) else None
        return tuple(one for one in claims if one.cell == cell)

    def forget(self, uri: str) -> None:
        """What was found is no longer certain: the next who asks has it checked anew."""
        self._entries.pop(uri, None)

    def dependents(self, path: str) -> list[Unit]:
        """Open documents and notebooks whose last findings rest on the file at `path`."""
        return [
            unit for unit in self._documents.units() if path in self._dependencies(unit) and unit.path != path
        ]

    def _dependencies(self, unit: Unit) -> frozenset[str]:
        entry = self._entries.get(unit.uri)
        if entry is None or not entry.result.done() or entry.result.exception() is not None:
            return frozenset()
        return entry.result.result().dependencies

    def _entry(self, unit: Unit) -> _Entry:
        entry = self._entries.get(unit.uri)
        if entry is None or entry.unit is not unit:
            entry = self._entries[unit.uri] = _Entry(unit, self._ask(unit, self._engine.check, Checked()))
        return entry

    def _ask(self, unit: Unit, ask: Callable[[str, str], Answer], nothing: Answer) -> asyncio.Future[Answer]:
        """Ask the engine, in the worker: nothing where the document has changed while this waited for its turn."""

        def asked() -> Answer:
            if unit.path is None or self._documents.unit(unit.uri) is not unit:
                return nothing
            return ask(unit.path, unit.content)

        return asyncio.wrap_future(self._worker.submit(asked))

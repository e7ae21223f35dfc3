"""From a document to findings: the configuration in force, exclusions, the checker. The engine is called from the thread that lints only,
so that the thread that talks to the editor never waits; the newest result for each open document is computed once, shared by all who
ask, and dropped when the document moves on."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, TypeVar

from gpulint.config import FILE_NAMES, Config, ConfigError, ConfigResolver, Overrides
from gpulint.findings import Finding
from gpulint.lint.checking import Checker
from gpulint.lint.selection import known_rules
from gpulint.rule import Rule
from gpulint.server.documents import Book, Document, Documents, Unit
from gpulint.source.discovery import excluded
from gpulint.source.files import is_notebook
from gpulint.source.program import top_at
from gpulint.source.shell import is_settings_text
from gpulint.source.syntax import SourceError

if TYPE_CHECKING:
    from gpulint.lint.explaining import Explained


Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What checking a text gave. `dependencies` are the absolute paths of other files that the findings rest on, `rules`
    those that exist, and `trace` is the traceback of a failed rule."""

    findings: tuple[Finding, ...] = ()
    dependencies: frozenset[str] = frozenset()
    rules: tuple[type[Rule], ...] = ()
    trace: str = ""

    def in_cell(self, number: int) -> Checked:
        """Only the findings in one cell of a notebook."""
        return replace(self, findings=tuple(item for item in self.findings if item.cell == number))


class Engine:
    """Checks texts under the nearest configuration of their path, read anew when its file changes.

    `buffers` stand for files that others import. `complain` gets a sentence about a wrong configuration, once; the last
    one that was right stays in force.
    """

    def __init__(
        self, buffers: Mapping[str, bytes], overrides: Overrides, complain: Callable[[str], None]
    ) -> None:
        self._buffers = buffers
        self._overrides = overrides
        self._complain = complain
        self._last: dict[str, Checker] = {}
        self.reset()

    def configure(self, overrides: Overrides) -> None:
        """The editor's settings have changed."""
        self._overrides = overrides
        self.reset()

    def forget_files(self) -> None:
        """Python files may have changed on disk."""
        for checker in self._checkers:
            checker.forget_files()

    def warm(self) -> None:
        """What the first check needs is imported."""
        gc.collect()
        gc.freeze()  # modules and the protocol's classes: nothing to look through again and again

    def check(self, path: str, text: str) -> Checked:
        """The findings in `text`, none where the configuration excludes `path` or no configuration is usable."""
        checker = self._checker(os.path.dirname(path))
        if checker is None or excluded(path, checker.configs[0]):
            return Checked()
        with _uncollected():
            result = checker.check_text(text, path)
        dependencies = frozenset(name for name, _ in result.dependencies)
        found = () if result.internal else result.findings
        return Checked(found, dependencies, known_rules(checker.configs[0]), result.trace)

    def explained(self, path: str, text: str) -> tuple[Explained, ...]:
        """What the rules in force consider in `text`, told or not; nothing where it cannot be analysed."""
        from gpulint.lint.explaining import explain_text

        checker = self._checker(os.path.dirname(path))
        if checker is None or excluded(path, checker.configs[0]) or is_settings_text(path, text):
            return ()
        if not is_notebook(path) and not checker.passes_gate(text.encode("utf-8", "replace"), path, 0):
            return ()
        try:
            with _uncollected():
                rules = checker.selection(0).rules_for(path)
                return tuple(explain_text(text.removeprefix("\ufeff"), path, rules, checker.project))
        except SourceError:
            return ()

    def fixed(self, path: str, text: str, unsafe: bool, rule: str = "") -> str:
        """`text` with its fixes applied, as `gpulint --fix` does, those of one rule where its code is given; itself where
        there is nothing to fix."""
        checker = self._checker(os.path.dirname(path))
        if checker is None or excluded(path, checker.configs[0]):
            return text
        fixer = replace(checker, mode="diff", unsafe=unsafe)
        if rule:
            only = replace(checker.configs[0], fixable=(rule,))
            fixer = replace(fixer, configs=(only,), _selections={})
        with _uncollected():
            outcome = fixer.check_text(text, path).outcome
        if outcome is None:
            return text
        return ("\ufeff" if text.startswith("\ufeff") else "") + outcome.text

    # --- configuration -------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Configuration files may have changed."""
        self._resolver = ConfigResolver(overrides=self._overrides)
        self._stamps: dict[str, Stamp] = {}
        self._current: dict[str, Checker | None] = {}
        self._checkers: list[Checker] = []

    def _checker(self, directory: str) -> Checker | None:
        stamp = _stamp(directory)
        if self._stamps.get(directory, stamp) != stamp:
            self.reset()
        self._stamps[directory] = stamp
        if directory not in self._current:
            self._current[directory] = self._configured(directory)
        return self._current[directory]

    def _configured(self, directory: str) -> Checker | None:
        try:
            checker = self._checker_of(self._resolver.for_directory(directory))
            self._last[directory] = checker
        except ConfigError as error:
            self._complain(str(error))
            return self._last.get(directory)
        return checker

    def _checker_of(self, config: Config) -> Checker:
        """One checker for each configuration: it keeps what it has read of the project. Raises `ConfigError`."""
        for known in self._checkers:
            if known.configs[0] == config:
                return known
        checker = Checker((config,), hashing=False, top=top_at(config.root), buffers=self._buffers)
        checker.selection(0)
        self._checkers.append(checker)
        return checker


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection: it would look through the growing syntax tree again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _stamp(directory: str) -> Stamp:
    """What tells that a configuration file at or above `directory` has come, gone or changed. Twenty calls of `stat`, so
    that it also works with editors that watch no files."""
    found: list[tuple[str, int, int]] = []
    for folder in (directory, *map(str, Path(directory).parents)):
        for path in (os.path.join(folder, name) for name in FILE_NAMES):
            with suppress(OSError):
                status = os.stat(path)
                found.append((path, status.st_mtime_ns, status.st_size))
    return tuple(found)


Result = TypeVar("Result")

# The analysis recurses into nested code; threads other than the first get half a megabyte on some systems.
_STACK: Final = 64 * 1024 * 1024


class Worker:
    """Runs functions one after another in a thread that does not keep the process alive."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        size = threading.stack_size(_STACK)
        try:
            threading.Thread(target=self._run, name="gpulint", daemon=True).start()
        finally:
            threading.stack_size(size)

    def submit(self, function: Callable[[], Result]) -> Future[Result]:
        """The future result of `function`. A future that is cancelled before its turn is passed over."""
        future: Future[Result] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self._jobs.put(job)
        return future

    def _run(self) -> None:
        while True:
            self._jobs.get()()


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

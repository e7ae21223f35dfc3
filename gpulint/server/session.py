"""One editor's session: what its messages change, and what it is told. Everything here runs in the event loop."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from gpulint.server import actions
from gpulint.server.books import Book
from gpulint.server.checks import Checks, Found
from gpulint.server.diagnostics import Shown, diagnostic
from gpulint.server.documents import Document, Documents, Unit
from gpulint.server.engine import Engine
from gpulint.server.hover import hover
from gpulint.server.options import ServerOptions, read_options
from gpulint.server.worker import Worker

if TYPE_CHECKING:
    from gpulint.lint.explaining import Explained

# Seconds without a key before a check begins, where the server decides when to check.
DEBOUNCE: Final = 0.1
WATCHED: Final = ("**/*.toml", "**/*.py")
_log = logging.getLogger(__name__)


class Session:
    """The documents, the checker and the client's abilities, from `initialize` on."""

    def __init__(self, server: LanguageServer, params: types.InitializeParams) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._client = params.capabilities
        document, workspace = self._client.text_document, self._client.workspace
        self._pulls = document is not None and document.diagnostic is not None
        self._shown = Shown.by(self._client, self._pulls)
        edit = workspace.workspace_edit if workspace is not None else None
        self._options = read_options(params.initialization_options)
        encoding = types.PositionEncodingKind(server.workspace.position_encoding).value
        self._worker = Worker()
        self._documents = Documents(_root(params), encoding)
        self._editing = actions.Editing(self._documents, edit is not None and bool(edit.document_changes))
        self._engine = Engine(self._documents.buffers, self._options.overrides, self._complain)
        self._checks = Checks(self._documents, self._engine, self._worker)
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._failed = False
        self._worker.submit(self._engine.warm)

    # --- documents -----------------------------------------------------------------------------------------------

    def ready(self) -> None:
        """The client is ready for messages: what was wrong with its settings, and which files it should watch."""
        self._tell_problems(self._options)
        workspace = self._client.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        if watching is not None and watching.dynamic_registration:
            watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
            registration = types.Registration(
                "gpulint-watched-files",
                types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
                types.DidChangeWatchedFilesRegistrationOptions(watchers),
            )
            self._server.client_register_capability(types.RegistrationParams([registration]))

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        document = self._documents.opened(params.text_document)
        self._schedule(document, 0)
        self._recheck_dependents(document)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        document = self._documents.changed(params.text_document, params.content_changes)
        if document is None:
            _log.warning("a change of %s, which is not open", params.text_document.uri)
            return
        self._schedule(document, DEBOUNCE)
        self._recheck_dependents(document)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        document = self._documents.closed(params.text_document.uri)
        if document is None:
            return
        self._drop(document.uri)
        if not self._pulls and document.path is not None:
            self._publish(types.PublishDiagnosticsParams(document.uri, []))
        self._recheck_dependents(document)

    def book_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        self._schedule(self._documents.book_opened(params), 0)

    def book_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        book, gone = self._documents.book_changed(params)
        for cell in gone:
            self._publish(types.PublishDiagnosticsParams(cell.uri, []))
        if book is not None:
            self._schedule(book, DEBOUNCE)

    def book_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        self._drop(uri)
        for cell in self._documents.book_closed(uri):
            self._publish(types.PublishDiagnosticsParams(cell.uri, []))

    def _drop(self, uri: str) -> None:
        timer = self._timers.pop(uri, None)
        if timer is not None:
            timer.cancel()
        self._checks.forget(uri)

    def saved(self) -> None:
        self._worker.submit(self._engine.forget_files)
        self._recheck_all()

    def files_changed(self, params: types.DidChangeWatchedFilesParams) -> None:
        if any(change.uri.endswith(".toml") for change in params.changes):
            self._worker.submit(self._engine.reload)
        self._worker.submit(self._engine.forget_files)
        self._recheck_all()

    def configured(self, settings: Any) -> None:
        """The client's settings have changed. Clients also send empty ones to make servers ask: these change nothing."""
        if not settings:
            return
        self._options = read_options(settings)
        self._tell_problems(self._options)
        overrides = self._options.overrides
        self._worker.submit(lambda: self._engine.configure(overrides))
        self._recheck_all()

    # --- checks --------------------------------------------------------------------------------------------------

    def _recheck_dependents(self, document: Document) -> None:
        if document.path is not None:
            for other in self._checks.dependents(document.path):
                self._checks.forget(other.uri)
                self._schedule(other, DEBOUNCE)

    def _recheck_all(self) -> None:
        for unit in self._documents.units():
            self._checks.forget(unit.uri)
            self._schedule(unit, 0)
        workspace = self._client.workspace
        if self._pulls and workspace is not None and workspace.diagnostics is not None:
            if workspace.diagnostics.refresh_support:
                self._server.workspace_diagnostic_refresh(None)

    def _schedule(self, unit: Unit, delay: float) -> None:
        """Publish the findings in a document after `delay` seconds without another change; not to clients that ask. Those
        ask for single cells, though what is written in one changes the findings in others: notebooks are published."""
        if unit.path is None or (self._pulls and not isinstance(unit, Book)):
            return
        earlier = self._timers.pop(unit.uri, None)
        if earlier is not None:
            earlier.cancel()
        self._timers[unit.uri] = asyncio.ensure_future(self._check_later(unit, delay))

    async def _check_later(self, unit: Unit, delay: float) -> None:
        await asyncio.sleep(delay)
        for part in [cell for cell, _ in unit.cells] if isinstance(unit, Book) else [unit]:
            found = await self._found(part.uri)
            if found is not None:
                version = found.document.version
                self._publish(types.PublishDiagnosticsParams(part.uri, self._items(found), version))

    async def _found(self, uri: str) -> Found | None:
        """The newest findings in a document. What failed is logged; then there are none."""
        try:
            found = await self._checks.of(uri)
        except Exception as error:
            _log.exception("checking %s failed", uri)
            self._tell_failure(uri, f"{type(error).__name__}: {error}")
            return None
        if found is not None and found.whole.trace:
            self._tell_failure(uri, found.whole.trace)
        return found

    async def pulled(self, uri: str) -> list[types.Diagnostic]:
        document = self._documents.get(uri)
        found = await self._found(uri) if document is not None and document.notebook is None else None
        return [] if found is None else self._items(found)

    def _items(self, found: Found) -> list[types.Diagnostic]:
        findings, document = found.checked.findings, found.document
        return [diagnostic(item, document, self._documents, self._shown) for item in findings]

    # --- requests ------------------------------------------------------------------------------------------------

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        found = await self._found(params.text_document.uri)
        if found is None:
            return []
        document = found.document
        only = params.context.only
        offered: list[types.CodeAction] = []
        if actions.wanted(types.CodeActionKind.QuickFix.value, only):
            about = actions.concerned(found.checked.findings, document, params)
            offered += actions.quick_fixes(about, document, self._editing)
            offered += actions.silencing(about, document, self._editing)
        unsafe = self._options.unsafe_fixes
        kind = actions.FIX_ALL if document.notebook is None else actions.FIX_BOOK
        if actions.wanted(kind, only) and actions.fixable(found.whole.findings, unsafe):
            edit = None if self._resolves else await self._fixed(document)
            offered.append(actions.fix_all(document, kind, unsafe, edit))
        return offered

    async def resolved(self, action: types.CodeAction) -> types.CodeAction:
        """The action with its edit, for the document as it is now."""
        data = action.data if isinstance(action.data, dict) else {}
        document = self._documents.get(str(data.get("uri", "")))
        if action.edit is None and document is not None and data.get("fix") == "all":
            action.edit = await self._fixed(document)
        return action

    async def _fixed(self, document: Document) -> types.WorkspaceEdit:
        """All fixes in a document, or in the notebook that a cell is part of."""
        unit = self._documents.unit(document.uri)
        if unit is None or unit.path is None:
            return self._editing.of([])
        path, before, unsafe = unit.path, unit.content, self._options.unsafe_fixes
        content = await asyncio.wrap_future(
            self._worker.submit(lambda: self._engine.fixed(path, before, unsafe))
        )
        fixed = unit.sources(content) if isinstance(unit, Book) else [(unit, content)]
        changes = ((part, part.text.edits_to(new)) for part, new in fixed)
        return self._editing.of([(part, edits) for part, edits in changes if edits])

    @property
    def _resolves(self) -> bool:
        """Whether the client asks for an action's edit when it is chosen."""
        document = self._client.text_document
        able = document.code_action if document is not None else None
        return (
            able is not None
            and able.resolve_support is not None
            and "edit" in able.resolve_support.properties
        )

    async def hovered(self, params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        found = await self._found(uri)
        claims = await self._explained(uri) if found is not None else ()
        told = None if found is None else hover(found.document, found.checked, claims, params.position)
        if told is None:
            return None
        text, spot = told
        document = self._client.text_document
        able = document.hover if document is not None else None
        formats = able.content_format if able is not None else None
        plain = formats is not None and types.MarkupKind.Markdown not in formats
        kind = types.MarkupKind.PlainText if plain else types.MarkupKind.Markdown
        return types.Hover(types.MarkupContent(kind, text), spot)

    async def _explained(self, uri: str) -> tuple[Explained, ...]:
        try:
            return await self._checks.explained(uri)
        except Exception:  # a rule failed, which the check tells as well
            _log.exception("explaining %s failed", uri)
            return ()

    # --- messages ------------------------------------------------------------------------------------------------

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        try:
            self._server.text_document_publish_diagnostics(params)
        except OSError:  # the client is gone; the end of standard input ends the server
            _log.info("diagnostics could not be sent")

    def _complain(self, sentence: str) -> None:
        """Called by the engine, from the worker's thread."""
        self._loop.call_soon_threadsafe(self._show, types.MessageType.Error, f"gpulint: {sentence}")

    def _tell_problems(self, options: ServerOptions) -> None:
        for sentence in options.problems:
            self._show(types.MessageType.Warning, f"gpulint: {sentence}")

    def _tell_failure(self, uri: str, trace: str) -> None:
        """Every failure goes to the log, and the first one is shown: without it the file would seem clean."""
        message = f"gpulint failed on {uri}, which was not checked:\n{trace}"
        self._server.window_log_message(types.LogMessageParams(types.MessageType.Error, message))
        if not self._failed:
            self._failed = True
            self._show(types.MessageType.Error, f"gpulint failed on {uri}; its log says how.")

    def _show(self, kind: types.MessageType, message: str) -> None:
        try:
            self._server.window_show_message(types.ShowMessageParams(kind, message))
        except OSError:
            _log.info("a message could not be sent: %s", message)


def _root(params: types.InitializeParams) -> str:
    """The folder that untitled documents count as being in."""
    uris = [folder.uri for folder in params.workspace_folders or ()]
    uris += [params.root_uri] if params.root_uri else []
    for uri in uris:
        path = to_fs_path(uri)
        if path:
            return os.path.normpath(path)
    return os.getcwd()

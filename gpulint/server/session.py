"""One editor's session: what its messages change, and what it is told. Everything here runs in the event loop."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from gpulint.config import KEYS, ConfigError, Context, Overrides
from gpulint.server import diagnostics
from gpulint.server.checks import Checks, Engine, Found, Worker
from gpulint.server.diagnostics import Editing, FixAll, Shown, diagnostic
from gpulint.server.documents import Book, Document, Documents, Unit
from gpulint.server.hover import explanation, hover

if TYPE_CHECKING:
    from gpulint.lint.explaining import Explained


# What the client calls a key of the configuration.
_KNOWN: Final = {
    "select": "select",
    "ignore": "ignore",
    "confidence": "confidence",
    "unsafeFixes": "unsafe-fixes",
}


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """`overrides` outrank the configuration files; `unsafe_fixes` lets "fix all" apply unsafe ones too. `problems` are
    sentences about settings that were passed over."""

    overrides: Overrides = field(default_factory=Overrides)
    unsafe_fixes: bool = False
    problems: tuple[str, ...] = ()


def read_options(given: Any) -> ServerOptions:
    """The options in a client's JSON. What has the wrong form is passed over and told."""
    settings = {} if given is None else given
    if isinstance(settings, dict):
        settings = settings.get("gpulint", settings)
    if not isinstance(settings, dict):
        return ServerOptions(problems=("the settings are no object",))
    found: dict[str, Any] = {}
    problems = [f"unknown setting {name!r}" for name in settings if name not in _KNOWN]
    for name, key in _KNOWN.items():
        try:
            if settings.get(name) is not None:
                found[key] = KEYS[key].parse(Context("", "", ""), name, settings[name])
        except ConfigError as error:
            problems.append(str(error))
    overrides = Overrides(
        select=found.get("select"), ignore=found.get("ignore", ()), confidence=found.get("confidence")
    )
    return ServerOptions(overrides, found.get("unsafe-fixes", False), tuple(problems))


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
        self._pulls = get_capability(self._client, "text_document.diagnostic") is not None
        self._shown = Shown.by(self._client, self._pulls)
        versioned = get_capability(self._client, "workspace.workspace_edit.document_changes")
        self._options = read_options(params.initialization_options)
        encoding = types.PositionEncodingKind(server.workspace.position_encoding).value
        self._worker = Worker()
        self._documents = server.protocol._workspace = Documents(_root(params), encoding, self._closed)
        self._editing = Editing(self._documents, bool(versioned))
        self._engine = Engine(self._documents.buffers, self._options.overrides, self._complain)
        self._checks = Checks(self._documents, self._engine, self._worker)
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._failed = False
        self._worker.submit(self._engine.warm)

    # --- documents -----------------------------------------------------------------------------------------------

    def ready(self) -> None:
        """The client is ready for messages: what was wrong with its settings, and which files it should watch."""
        self._tell_problems(self._options)
        if get_capability(self._client, "workspace.did_change_watched_files.dynamic_registration"):
            watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
            registration = types.Registration(
                "gpulint-watched-files",
                types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
                types.DidChangeWatchedFilesRegistrationOptions(watchers),
            )
            self._server.client_register_capability(types.RegistrationParams([registration]))

    def changed(self, uri: str, delay: float = DEBOUNCE) -> None:
        """A document or notebook is another one now."""
        unit = self._documents.unit(uri)
        if unit is not None:
            self._schedule(unit, delay)
            if isinstance(unit, Document):
                self._recheck_dependents(unit)

    def _closed(self, document: Document) -> None:
        self.drop(document.uri)
        if document.notebook is not None or (document.path is not None and not self._pulls):
            self._publish(types.PublishDiagnosticsParams(document.uri, []))
        self._recheck_dependents(document)

    def drop(self, uri: str) -> None:
        """A document or notebook is closed."""
        timer = self._timers.pop(uri, None)
        if timer is not None:
            timer.cancel()
        self._checks.forget(uri)

    def saved(self) -> None:
        self._worker.submit(self._engine.forget_files)
        self._recheck_all()

    def files_changed(self, params: types.DidChangeWatchedFilesParams) -> None:
        if any(change.uri.endswith(".toml") for change in params.changes):
            self._worker.submit(self._engine.reset)
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
        if self._pulls and get_capability(self._client, "workspace.diagnostics.refresh_support"):
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
        every = FixAll(document.uri, self._options.unsafe_fixes)
        offered: list[types.CodeAction] = []
        quick = types.CodeActionKind.QuickFix.value
        if diagnostics.wanted(quick, only):
            about = diagnostics.concerned(found.checked.findings, document, params)
            offered += diagnostics.quick_fixes(about, document, self._editing)
            for one, told in diagnostics.of_rules(about, found.whole.findings, every):
                offered.append(one.action(quick, await self._edit_unless_asked(one), told))
            offered += diagnostics.silencing(about, document, self._editing)
        kind = diagnostics.FIX_ALL if document.notebook is None else diagnostics.FIX_BOOK
        if diagnostics.wanted(kind, only) and any(map(every.applies, found.whole.findings)):
            offered.append(every.action(kind, await self._edit_unless_asked(every)))
        return offered

    async def _edit_unless_asked(self, fix: FixAll) -> types.WorkspaceEdit | None:
        return None if self._resolves else await self._fixed(fix)

    async def resolved(self, action: types.CodeAction) -> types.CodeAction:
        """The action with its edit, for the document as it is now."""
        fix = FixAll.of(action.data, self._options.unsafe_fixes)
        if action.edit is None and fix is not None:
            action.edit = await self._fixed(fix)
        return action

    async def _fixed(self, fix: FixAll) -> types.WorkspaceEdit:
        unit = self._documents.unit(fix.uri)
        if unit is None or unit.path is None:
            return self._editing.of([])
        path, before = unit.path, unit.content
        content = await asyncio.wrap_future(
            self._worker.submit(lambda: self._engine.fixed(path, before, fix.unsafe, fix.rule))
        )
        fixed = unit.sources(content) if isinstance(unit, Book) else [(unit, content)]
        changes = ((part, part.text.edits_to(new)) for part, new in fixed)
        return self._editing.of([(part, edits) for part, edits in changes if edits])

    @property
    def _resolves(self) -> bool:
        """Whether the client asks for an action's edit when it is chosen."""
        able = get_capability(self._client, "text_document.code_action.resolve_support.properties")
        return able is not None and "edit" in able

    async def hovered(self, params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        found = await self._found(uri)
        claims = await self._explained(uri) if found is not None else ()
        told = None if found is None else hover(found.document, found.checked, claims, params.position)
        if told is None:
            return None
        text, spot = told
        formats = get_capability(self._client, "text_document.hover.content_format")
        plain = formats is not None and types.MarkupKind.Markdown not in formats
        kind = types.MarkupKind.PlainText if plain else types.MarkupKind.Markdown
        return types.Hover(types.MarkupContent(kind, text), spot)

    async def line_explained(self, uri: str, row: int) -> str:
        """Markdown about a line, counted from 0; empty where the document is not open or not checked."""
        found = await self._found(uri)
        unit = self._documents.unit(uri)
        if found is None or unit is None or unit.path is None:
            return ""
        return explanation(found.document, found.checked, await self._explained(uri), row)

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

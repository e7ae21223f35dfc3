"""An editor for tests: pygls' client, the real server in a process of its own, and what an editor does with edits."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import warm
from lsprotocol import types
from pygls.lsp.client import LanguageClient
from support import environment

SERVER = (sys.executable, "-m", "gpulint", "server")
PATIENCE = 60.0


def able(
    *,
    pull: bool = False,
    resolve: bool = False,
    encodings: Sequence[str] | None = None,
    versioned: bool = True,
    markdown: bool = True,
) -> types.ClientCapabilities:
    """What the editor says that it can do."""
    return types.ClientCapabilities(
        general=None
        if encodings is None
        else types.GeneralClientCapabilities(
            position_encodings=[types.PositionEncodingKind(name) for name in encodings]
        ),
        notebook_document=types.NotebookDocumentClientCapabilities(
            types.NotebookDocumentSyncClientCapabilities()
        ),
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=versioned),
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
            diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=True),
        ),
        text_document=types.TextDocumentClientCapabilities(
            publish_diagnostics=types.PublishDiagnosticsClientCapabilities(
                related_information=True,
                code_description_support=True,
                tag_support=types.ClientDiagnosticsTagOptions(
                    [types.DiagnosticTag.Unnecessary, types.DiagnosticTag.Deprecated]
                ),
            ),
            diagnostic=types.DiagnosticClientCapabilities() if pull else None,
            code_action=types.CodeActionClientCapabilities(
                data_support=True,
                resolve_support=types.ClientCodeActionResolveOptions(["edit"]) if resolve else None,
            ),
            hover=types.HoverClientCapabilities(
                content_format=[types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText]
            ),
        ),
    )


class Editor(LanguageClient):
    """Keeps what the server sends. `texts` are the open documents by URI, with their versions."""

    def __init__(self, root: Path) -> None:
        super().__init__("test-editor", "1")
        self.root = root
        self.published: list[types.PublishDiagnosticsParams] = []
        self.shown: list[str] = []
        self.logged: list[str] = []
        self.registered: list[types.Registration] = []
        self.refreshes = 0
        self.texts: dict[str, tuple[int, str]] = {}
        self.exit_code: int | None = None
        self._news = asyncio.Event()
        self._listen()

    def _listen(self) -> None:
        def told_of(method: str, keep: Callable[[Any], None]) -> None:
            @self.feature(method)
            def told(params: Any = None) -> None:
                keep(params)
                self._news.set()

        told_of(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, self.published.append)
        told_of(types.WINDOW_SHOW_MESSAGE, lambda params: self.shown.append(params.message))
        told_of(types.WINDOW_LOG_MESSAGE, lambda params: self.logged.append(params.message))
        told_of(types.CLIENT_REGISTER_CAPABILITY, lambda params: self.registered.extend(params.registrations))
        told_of(types.WORKSPACE_DIAGNOSTIC_REFRESH, lambda _: setattr(self, "refreshes", self.refreshes + 1))

    async def server_exit(self, server: asyncio.subprocess.Process) -> None:
        self.exit_code = server.returncode
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a message that makes the condition true. Raises TimeoutError."""

        async def wait() -> None:
            while not condition():
                self._news.clear()
                await self._news.wait()

        await asyncio.wait_for(wait(), PATIENCE)

    # --- what a person does --------------------------------------------------------------------------------------

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def open(self, name: str, text: str, language: str = "python") -> str:
        """Open a document; its URI. A name with a colon is one already."""
        uri = name if ":" in name else self.uri(name)
        self.texts[uri] = (1, text)
        item = types.TextDocumentItem(uri, language, 1, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, *changes: tuple[types.Range | None, str], text: str) -> int:
        """Send changes after which the document is `text`; its new version."""
        version = self.texts[uri][0] + 1
        self.texts[uri] = (version, text)
        events: list[types.TextDocumentContentChangeEvent] = [
            types.TextDocumentContentChangeWholeDocument(new)
            if where is None
            else types.TextDocumentContentChangePartial(where, new)
            for where, new in changes
        ]
        identifier = types.VersionedTextDocumentIdentifier(version, uri)
        self.text_document_did_change(types.DidChangeTextDocumentParams(identifier, events))
        return version

    def rewrite(self, uri: str, text: str) -> int:
        return self.change(uri, (None, text), text=text)

    def save(self, uri: str) -> None:
        self.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close_document(self, uri: str) -> None:
        del self.texts[uri]
        self.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def files_changed(self, *names: str) -> None:
        changes = [types.FileEvent(self.uri(name), types.FileChangeType.Changed) for name in names]
        self.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes))

    async def diagnostics(self, uri: str, after: int = 0) -> list[types.Diagnostic]:
        """What is published for the newest version of a document, leaving out the first `after` messages."""

        def newest() -> types.PublishDiagnosticsParams | None:
            fitting = [
                item
                for item in self.published[after:]
                if item.uri == uri and item.version == self.texts[uri][0]
            ]
            return fitting[-1] if fitting else None

        await self.until(lambda: newest() is not None)
        found = newest()
        return list(found.diagnostics)

    async def pull(self, uri: str) -> list[types.Diagnostic]:
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
        report = await self.text_document_diagnostic_async(params)
        return list(report.items)

    async def actions(
        self,
        uri: str,
        where: types.Range,
        only: Sequence[str] | None = None,
        told: Sequence[types.Diagnostic] = (),
    ) -> list[types.CodeAction]:
        context = types.CodeActionContext(list(told), list(only) if only is not None else None)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), where, context)
        answer = await self.text_document_code_action_async(params)
        return [item for item in answer or () if isinstance(item, types.CodeAction)]

    async def hover_at(self, uri: str, line: int, character: int) -> str:
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        answer = await self.text_document_hover_async(params)
        if answer is None:
            return ""
        assert isinstance(answer.contents, types.MarkupContent)
        return answer.contents.value

    def after(self, action: types.CodeAction, uri: str, units: Callable[[str], int] | None = None) -> str:
        """The document's text with the action applied."""
        if action.edit.changes is not None:
            edits: Sequence[Any] = action.edit.changes[uri]
        else:
            (change,) = action.edit.document_changes
            assert (change.text_document.uri, change.text_document.version) == (uri, self.texts[uri][0])
            edits = change.edits
        return applied(self.texts[uri][1], edits, units or utf16)


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def utf8(text: str) -> int:
    return len(text.encode())


def offset(text: str, place: types.Position, units: Callable[[str], int]) -> int:
    """Where a place is in a text whose lines end as the protocol says. Written apart from the server's own."""
    lines = text.replace("\r\n", "\n\n").replace("\r", "\n").split("\n")
    if "\r\n" in text:  # every line end is two characters here
        assert text.count("\r\n") == text.count("\n") == text.count("\r")
        lines = text.split("\r\n")
    width = 2 if "\r\n" in text else 1
    line = lines[place.line]
    for column in range(len(line) + 1):
        if units(line[:column]) == place.character:
            return sum(len(earlier) + width for earlier in lines[: place.line]) + column
    raise AssertionError(f"{place} is inside a character or beyond the line {line!r}")


def applied(text: str, edits: Sequence[Any], units: Callable[[str], int]) -> str:
    """A text after an editor's edits, which must not overlap."""
    spans = [
        (offset(text, edit.range.start, units), offset(text, edit.range.end, units), edit.new_text)
        for edit in edits
    ]
    spans.sort(key=lambda span: span[:2])
    pieces, done = [], 0
    for start, end, new in spans:
        assert start >= done, f"edits overlap: {spans}"
        pieces += [text[done:start], new]
        done = end
    return "".join([*pieces, text[done:]])


def at(line: int, character: int = 0, end: tuple[int, int] | None = None) -> types.Range:
    last = end or (line, character)
    return types.Range(types.Position(line, character), types.Position(*last))


@asynccontextmanager
async def editing(
    root: Path, client: types.ClientCapabilities | None = None, options: Any = None
) -> AsyncIterator[Editor]:
    """An editor with a running server, which is asked to end when the block does."""
    editor = Editor(root)
    await editor.start_io(*warm.command_line(), "server", cwd=root, env=environment())
    try:
        editor.greeting = await editor.initialize_async(
            types.InitializeParams(
                capabilities=client or able(), root_uri=root.as_uri(), initialization_options=options
            )
        )
        editor.initialized(types.InitializedParams())
        yield editor
        if editor.exit_code is None:
            await editor.shutdown_async(None)
            editor.exit(None)
            await editor.until(lambda: editor.exit_code is not None)
    finally:
        if editor.exit_code is None and editor._server is not None:
            editor._server.kill()
        with suppress(TimeoutError):  # after a failure nothing may be left to stop
            await asyncio.wait_for(editor.stop(), 30)


# --- without a client's manners ------------------------------------------------------------------------------------


def message(content: Any) -> bytes:
    body = content if isinstance(content, bytes) else json.dumps({"jsonrpc": "2.0", **content}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


INITIALIZE = message({"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None}})


def talk(given: bytes, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """What a server answers to these bytes, after which its input ends."""
    return subprocess.run(SERVER, input=given, capture_output=True, cwd=cwd, env=environment(), timeout=120)

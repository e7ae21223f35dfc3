"""The server program: which method of the session answers which message, and the streams it talks over."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import Any, BinaryIO, Final, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from gpulint.server import actions
from gpulint.server.framing import Messages
from gpulint.server.protocol import ServerProtocol
from gpulint.server.session import Session
from gpulint.version import __version__

# What is to say about a line: the document's URI and the line, counted from 0, give Markdown.
EXPLAIN: Final = "gpulint.server.explainLine"
_log = logging.getLogger(__name__)


class GpulintServer(LanguageServer):
    """Speaks the protocol. `session` is there from `initialize` on; the protocol lets nothing else through before."""

    session: Session
    protocol: ServerProtocol

    def __init__(self) -> None:
        cells = types.NotebookDocumentFilterWithNotebook(
            "jupyter-notebook", [types.NotebookCellLanguage("python")]
        )
        notebooks = types.NotebookDocumentSyncOptions([cells], save=True)
        super().__init__(
            "gpulint", __version__, notebook_document_sync=notebooks, protocol_cls=ServerProtocol
        )

    def report_server_error(self, error: Exception, source: Any) -> None:
        """What goes wrong outside a request is logged; pygls would open a message box for each."""
        _log.error("%s: %s", type(error).__name__, error)
        if isinstance(error, (ValueError, RecursionError)):  # of json: nobody knows which message it was
            self.protocol.refuse_message()


def serve(verbose: bool) -> int:
    """Talk over standard input and output until the client is done or gone; the exit status.

    0 after the client's `shutdown`, otherwise 1, as the protocol has it.
    """
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    # The thread that waits for input would hold up any other end
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server = create()
    # Whatever else writes to standard output, a project's own rule for one, must not get between the messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    server.start_io(cast(BinaryIO, Messages(sys.stdin.buffer)), out)
    return 0 if server.protocol.shut_down else 1


def create() -> GpulintServer:
    """A server with its handlers, not yet started."""
    server = GpulintServer()
    _documents(server)
    _notebooks(server)
    _requests(server)
    return server


def _documents(server: GpulintServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.session = Session(server, params)

    @server.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        server.session.ready()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        server.session.opened(params)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        server.session.changed(params)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.session.closed(params)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        server.session.saved()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        server.session.files_changed(params)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        server.session.configured(params.settings)


def _notebooks(server: GpulintServer) -> None:
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenNotebookDocumentParams) -> None:
        server.session.book_opened(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeNotebookDocumentParams) -> None:
        server.session.book_changed(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseNotebookDocumentParams) -> None:
        server.session.book_closed(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveNotebookDocumentParams) -> None:
        server.session.saved()


def _requests(server: GpulintServer) -> None:
    pull = types.DiagnosticOptions(
        inter_file_dependencies=True, workspace_diagnostics=False, identifier="gpulint"
    )

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, pull)
    async def diagnostic(params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
        items = await server.session.pulled(params.text_document.uri)
        return types.RelatedFullDocumentDiagnosticReport(items)

    offered = types.CodeActionOptions(list(actions.KINDS), resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, offered)
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        return await server.session.actions(params)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(params: types.CodeAction) -> types.CodeAction:
        return await server.session.resolved(params)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        return await server.session.hovered(params)

    @server.command(EXPLAIN)
    async def explain(uri: str, row: int) -> str:
        return await server.session.line_explained(uri, row)

"""The server program: which method of the session answers which message, and the streams it talks over."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from gpulint.server import actions
from gpulint.server.protocol import Messages, ServerProtocol
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
    _notices(server)
    _requests(server)
    return server


def _notices(server: GpulintServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.session = Session(server, params)

    def hand_on(method: str, handle: Callable[[Session, Any], None]) -> None:
        @server.feature(method)
        def told(params: Any) -> None:
            handle(server.session, params)

    for method, handle in _TOLD.items():
        hand_on(method, handle)


# What the client tells, and who hears it.
_TOLD: Final[dict[str, Callable[[Session, Any], None]]] = {
    types.INITIALIZED: lambda session, _: session.ready(),
    types.TEXT_DOCUMENT_DID_OPEN: Session.opened,
    types.TEXT_DOCUMENT_DID_CHANGE: Session.changed,
    types.TEXT_DOCUMENT_DID_CLOSE: Session.closed,
    types.TEXT_DOCUMENT_DID_SAVE: lambda session, _: session.saved(),
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: Session.files_changed,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: lambda session, params: session.configured(params.settings),
    types.NOTEBOOK_DOCUMENT_DID_OPEN: Session.book_opened,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: Session.book_changed,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: Session.book_closed,
    types.NOTEBOOK_DOCUMENT_DID_SAVE: lambda session, _: session.saved(),
}


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

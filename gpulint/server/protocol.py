"""What pygls leaves to do of the protocol: documents of our own, and answers to requests that are wrong or out of turn."""

from __future__ import annotations

from typing import Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, lsp_method

_BEFORE: Final = types.ResponseError(types.ErrorCodes.ServerNotInitialized, "the server is not initialized")
_AFTER: Final = types.ResponseError(types.ErrorCodes.InvalidRequest, "the server has been shut down")
_NO_JSON: Final = types.ResponseError(types.ErrorCodes.ParseError, "the message is no JSON that can be read")


class ServerProtocol(LanguageServerProtocol):
    """Every request gets an answer; opening, changing and closing go to the server's own `documents`."""

    initialized = False
    shut_down = False

    def structure_message(self, data: dict[str, Any]) -> Any:
        """The message in a JSON object. One that does not fit its method is answered here, as it has no handler."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def refuse_message(self) -> None:
        """Answer a message that is no JSON."""
        self._send_response(None, error=_NO_JSON)  # type: ignore[arg-type]

    def handle_message(self, message: Any) -> None:
        method = getattr(message, "method", None)
        if method == types.INITIALIZE:
            self.initialized = True
        elif method is not None and method != types.EXIT and (self.shut_down or not self.initialized):
            if hasattr(message, "id"):
                self._send_response(message.id, error=_AFTER if self.shut_down else _BEFORE)
            return
        self.shut_down = self.shut_down or method == types.SHUTDOWN
        super().handle_message(message)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Any:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Any:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> Any:
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> Any:
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> Any:
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CLOSE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Any:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None

"""What can be done about findings: quick fixes, a comment that silences, and all safe fixes at once."""

from __future__ import annotations

import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lsprotocol import types

from gpulint.findings import Finding, Fix
from gpulint.lint.ignoring import add_ignores
from gpulint.server.diagnostics import range_of
from gpulint.server.documents import Document, Documents

FIX_ALL: Final = "source.fixAll.gpulint"
# In notebooks editors ask for what concerns all cells under a name of its own.
FIX_BOOK: Final = "notebook.source.fixAll.gpulint"
KINDS: Final[tuple[str, ...]] = (types.CodeActionKind.QuickFix.value, FIX_ALL, FIX_BOOK)
_UNSILENCED: Final = ("GPU000", "GPU001")


@dataclass(frozen=True, slots=True)
class Editing:
    """How edits are written for a client: with the documents' versions where it understands that."""

    documents: Documents
    versioned: bool

    def of(self, changes: Iterable[tuple[Document, Sequence[types.TextEdit]]]) -> types.WorkspaceEdit:
        if not self.versioned:
            return types.WorkspaceEdit(changes={document.uri: list(edits) for document, edits in changes})
        return types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(
                    types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version), list(edits)
                )
                for document, edits in changes
            ]
        )

    def of_fix(self, fix: Fix, document: Document) -> types.WorkspaceEdit:
        """A fix of a finding in `document`: in the order in which gpulint applies its edits, by place, insertions first. In
        a notebook they may be in several cells."""
        book = self.documents.book_of(document)
        changes: dict[str, tuple[Document, list[types.TextEdit]]] = {}
        for edit in sorted(fix.edits, key=lambda edit: (edit.start, edit.end != edit.start)):
            if not edit.content and edit.start == edit.end:
                continue
            cell = document if book is None or edit.cell is None else book.cell(edit.cell)
            where = types.Range(cell.text.place(edit.start), cell.text.place(edit.end))
            _, edits = changes.setdefault(cell.uri, (cell, []))
            edits.append(types.TextEdit(where, edit.content))
        return self.of(changes.values())


def wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether a client that asks for the kinds `only` (None: for all) wants an action of this kind."""
    return only is None or any(kind == asked or kind.startswith(f"{asked}.") for asked in only)


def concerned(
    findings: Iterable[Finding], document: Document, params: types.CodeActionParams
) -> list[tuple[Finding, list[types.Diagnostic]]]:
    """The findings that the client asks about, by place or by its own diagnostics, with those diagnostics."""
    found: list[tuple[Finding, list[types.Diagnostic]]] = []
    for finding in findings:
        spot = range_of(finding, document)
        told = [
            item for item in params.context.diagnostics if item.code == finding.code and item.range == spot
        ]
        if told or (spot.start <= params.range.end and params.range.start <= spot.end):
            found.append((finding, told))
    return found


def quick_fixes(
    about: Sequence[tuple[Finding, list[types.Diagnostic]]], document: Document, editing: Editing
) -> Iterator[types.CodeAction]:
    """One action for each different fix, the safe ones first; findings with the same fix share it."""
    by_edits: dict[Fix, tuple[Finding, list[types.Diagnostic]]] = {}
    for finding, told in about:
        if finding.fix is not None and finding.fix.edits:
            _, shared = by_edits.setdefault(finding.fix, (finding, []))
            shared += told
    for fix, (finding, told) in sorted(by_edits.items(), key=lambda item: item[0].applicability):
        safe = fix.applicability == "safe"
        yield types.CodeAction(
            title=f"gpulint ({finding.code}): {fix.message}{'' if safe else ' (unsafe)'}",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=told or None,
            is_preferred=safe,
            edit=editing.of_fix(fix, document),
        )


def silencing(
    about: Sequence[tuple[Finding, list[types.Diagnostic]]], document: Document, editing: Editing
) -> Iterator[types.CodeAction]:
    """For each finding in Python code, the comment that silences it."""
    if not document.is_python:  # a Dockerfile has no comments at the end of a line
        return
    done: set[tuple[str, int]] = set()
    for finding, told in about:
        if finding.code in _UNSILENCED or (finding.code, finding.line) in done:
            continue
        done.add((finding.code, finding.line))
        try:
            content = add_ignores(document.content, [finding])
        except (SyntaxError, tokenize.TokenError):
            continue
        yield types.CodeAction(
            title=f"gpulint ({finding.code}): suppress with # gpulint: ignore[{finding.code}]",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=told or None,
            edit=editing.of([(document, document.text.edits_to(content))]),
        )


def fixable(findings: Iterable[Finding], unsafe: bool) -> bool:
    """Whether "fix all" has anything to apply."""
    return any(
        finding.fix is not None and (unsafe or finding.fix.applicability == "safe") for finding in findings
    )


def fix_all(
    document: Document, kind: str, unsafe: bool, edit: types.WorkspaceEdit | None
) -> types.CodeAction:
    """The action for all fixes; without `edit` the client asks for it when the action is chosen."""
    which = "unsafe fixes too" if unsafe else "safe fixes"
    return types.CodeAction(
        title=f"gpulint: fix all ({which})", kind=kind, edit=edit, data={"uri": document.uri, "fix": "all"}
    )

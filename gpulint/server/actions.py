"""What can be done about findings: quick fixes, a comment that silences, and all safe fixes at once."""

from __future__ import annotations

import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lsprotocol import types

from gpulint.findings import Finding, Fix
from gpulint.ignoring import add_ignores
from gpulint.server.diagnostics import range_of
from gpulint.server.documents import Document

FIX_ALL: Final = "source.fixAll.gpulint"
KINDS: Final[tuple[str, ...]] = (types.CodeActionKind.QuickFix.value, FIX_ALL)
_UNSILENCED: Final = ("GPU000", "GPU001")


@dataclass(frozen=True, slots=True)
class Editing:
    """How edits are written for a client: with the document's version where it understands that."""

    versioned: bool

    def of(self, document: Document, edits: Sequence[types.TextEdit]) -> types.WorkspaceEdit:
        if not self.versioned:
            return types.WorkspaceEdit(changes={document.uri: list(edits)})
        identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, list(edits))])


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
            edit=editing.of(document, edits_of(fix, document)),
        )


def edits_of(fix: Fix, document: Document) -> list[types.TextEdit]:
    """A fix's edits for the client, in the order in which gpulint applies them: by place, insertions first."""
    ordered = sorted(fix.edits, key=lambda edit: (edit.start, edit.end != edit.start))
    return [
        types.TextEdit(
            types.Range(document.text.place(edit.start), document.text.place(edit.end)), edit.content
        )
        for edit in ordered
        if edit.content or edit.start != edit.end
    ]


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
            content = add_ignores(document.text.content, [finding])
        except (SyntaxError, tokenize.TokenError):
            continue
        yield types.CodeAction(
            title=f"gpulint ({finding.code}): suppress with # gpulint: ignore[{finding.code}]",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=told or None,
            edit=editing.of(document, document.text.edits_to(content)),
        )


def fixable(findings: Iterable[Finding], unsafe: bool) -> bool:
    """Whether "fix all" has anything to apply."""
    return any(
        finding.fix is not None and (unsafe or finding.fix.applicability == "safe") for finding in findings
    )


def fix_all(document: Document, unsafe: bool, edit: types.WorkspaceEdit | None) -> types.CodeAction:
    """The action for all fixes; without `edit` the client asks for it when the action is chosen."""
    which = "unsafe fixes too" if unsafe else "safe fixes"
    return types.CodeAction(
        title=f"gpulint: fix all ({which})", kind=FIX_ALL, edit=edit, data={"uri": document.uri, "fix": "all"}
    )

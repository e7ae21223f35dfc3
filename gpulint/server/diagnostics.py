"""Findings as the protocol's diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.uris import from_fs_path

from gpulint.findings import Finding, Position, Related, Severity
from gpulint.server.documents import Document, Documents

SOURCE: Final = "gpulint"
_SEVERITIES: Final = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}
# Rules whose findings are names that torch has deprecated.
_DEPRECATIONS: Final = frozenset({"GPU603"})


@dataclass(frozen=True, slots=True)
class Shown:
    """What the client says it can show of a diagnostic."""

    related: bool = False
    links: bool = False
    tags: frozenset[types.DiagnosticTag] = frozenset()

    @classmethod
    def by(cls, client: types.ClientCapabilities, pulled: bool) -> Shown:
        # Clients that ask for diagnostics often say what they can show only where the older way says it.
        older = get_capability(client, "text_document.publish_diagnostics")
        able = get_capability(client, "text_document.diagnostic") if pulled else None
        sides = [side for side in (older, able) if side is not None]
        tags = [side.tag_support.value_set for side in sides if side.tag_support is not None]
        return cls(
            any(side.related_information for side in sides),
            any(side.code_description_support for side in sides),
            frozenset(tag for values in tags for tag in values),
        )


def diagnostic(finding: Finding, document: Document, documents: Documents, shown: Shown) -> types.Diagnostic:
    """One finding in the newest state of a document."""
    linked = shown.links and finding.code.startswith("GPU")
    related = _all_related(finding, document, documents) if shown.related else []
    return types.Diagnostic(
        range=range_of(finding, document),
        message=finding.message,
        severity=_SEVERITIES[finding.severity] if not finding.doubts else types.DiagnosticSeverity.Hint,
        code=finding.code,
        code_description=types.CodeDescription(finding.url) if linked else None,
        source=SOURCE,
        tags=[tag for tag in _tags(finding) if tag in shown.tags] or None,
        related_information=related or None,
    )


def _all_related(
    finding: Finding, document: Document, documents: Documents
) -> list[types.DiagnosticRelatedInformation]:
    """Why it is told, what is open about it, and the other lines that belong to it."""
    here = types.Location(document.uri, range_of(finding, document))
    clauses = [f"reason: {finding.reason}"] if finding.reason else []
    clauses += [f"doubt: {doubt}" for doubt in finding.doubts]
    told = [types.DiagnosticRelatedInformation(here, clause) for clause in clauses]
    return told + [_related(other, document, documents) for other in finding.related]


def range_of(finding: Finding, document: Document) -> types.Range:
    return types.Range(
        document.text.place(Position(finding.line, finding.column)),
        document.text.place(Position(finding.end_line, finding.end_column)),
    )


def _tags(finding: Finding) -> list[types.DiagnosticTag]:
    if finding.code in _DEPRECATIONS:
        return [types.DiagnosticTag.Deprecated]
    return [types.DiagnosticTag.Unnecessary] if _only_taken_out(finding) else []


def _only_taken_out(finding: Finding) -> bool:
    """Whether the safe fix deletes what the finding points at and writes nothing: then it does nothing useful."""
    if finding.fix is None or finding.fix.applicability != "safe":
        return False
    start = Position(finding.line, finding.column)
    end = Position(finding.end_line, finding.end_column)
    edits = finding.fix.edits
    return not any(edit.content for edit in edits) and any(
        edit.start <= start and end <= edit.end for edit in edits
    )


def _related(other: Related, document: Document, documents: Documents) -> types.DiagnosticRelatedInformation:
    book = documents.book_of(document)
    if book is not None and other.cell is not None and other.filename == book.path:
        target: Document | None = book.cell(other.cell)
    else:
        target = document if other.filename == document.path else documents.at(other.filename)
    if target is not None:
        uri, place = target.uri, target.text.place(other.position)
    else:  # a line of a file on disk; its columns would have to be counted in the file's text
        uri = from_fs_path(other.filename) or document.uri
        place = types.Position(other.position.row - 1, 0)
    return types.DiagnosticRelatedInformation(types.Location(uri, types.Range(place, place)), other.message)

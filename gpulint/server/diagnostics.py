"""Findings as the protocol's diagnostics, and what can be done about them: quick fixes, a comment that silences, and all safe fixes at
once."""

from __future__ import annotations

import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.uris import from_fs_path

from gpulint.findings import Finding, Fix, Related, Severity
from gpulint.lint.ignoring import add_ignores
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
    return types.Range(document.text.place(finding.start), document.text.place(finding.end))


def _tags(finding: Finding) -> list[types.DiagnosticTag]:
    if finding.code in _DEPRECATIONS:
        return [types.DiagnosticTag.Deprecated]
    return [types.DiagnosticTag.Unnecessary] if _only_taken_out(finding) else []


def _only_taken_out(finding: Finding) -> bool:
    """Whether the safe fix deletes what the finding points at and writes nothing: then it does nothing useful."""
    if finding.fix is None or not finding.is_mended(unsafe=False):
        return False
    edits, start, end = finding.fix.edits, finding.start, finding.end
    around = (edit.start <= start and end <= edit.end for edit in edits)
    return not any(edit.content for edit in edits) and any(around)


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
        named = types.OptionalVersionedTextDocumentIdentifier
        edited = [types.TextDocumentEdit(named(one.uri, one.version), list(edits)) for one, edits in changes]
        return types.WorkspaceEdit(document_changes=[*edited])

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


# Findings that a client asks about, each with the client's own diagnostics of it
About = list[tuple[Finding, list[types.Diagnostic]]]


def concerned(findings: Iterable[Finding], document: Document, params: types.CodeActionParams) -> About:
    """The findings that the client asks about, by place or by its own diagnostics, with those diagnostics."""
    found: About = []
    for finding in findings:
        spot = range_of(finding, document)
        known = params.context.diagnostics
        told = [item for item in known if item.code == finding.code and item.range == spot]
        if told or (spot.start <= params.range.end and params.range.start <= spot.end):
            found.append((finding, told))
    return found


def quick_fixes(about: About, document: Document, editing: Editing) -> Iterator[types.CodeAction]:
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


def silencing(about: About, document: Document, editing: Editing) -> Iterator[types.CodeAction]:
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


@dataclass(frozen=True, slots=True)
class FixAll:
    """Fixing a whole document at once, or the notebook that a cell is part of: what every rule offers, or one of them."""

    uri: str
    unsafe: bool
    rule: str = ""

    @classmethod
    def of(cls, data: object, unsafe: bool) -> FixAll | None:
        """The inverse of `data`; None for what is not about this."""
        if not isinstance(data, dict) or data.get("fix") != "all":
            return None
        return cls(str(data.get("uri", "")), unsafe, str(data.get("rule", "")))

    @property
    def data(self) -> dict[str, str]:
        """What the client hands back when it asks for the edit."""
        return {"uri": self.uri, "fix": "all", "rule": self.rule}

    def applies(self, finding: Finding) -> bool:
        fix = finding.fix
        concerned = fix is not None and bool(fix.edits) and self.rule in ("", finding.code)
        return concerned and finding.is_mended(self.unsafe)

    def action(
        self, kind: str, edit: types.WorkspaceEdit | None = None, told: Sequence[types.Diagnostic] = ()
    ) -> types.CodeAction:
        """Without `edit` the client asks for it when the action is chosen."""
        about = f" ({self.rule}): fix all of this rule" if self.rule else ": fix all"
        which = "unsafe fixes too" if self.unsafe else "safe fixes"
        return types.CodeAction(
            title=f"gpulint{about} ({which})",
            kind=kind,
            diagnostics=list(told) or None,
            edit=edit,
            data=self.data,
        )


def of_rules(
    about: About, whole: Sequence[Finding], every: FixAll
) -> Iterator[tuple[FixAll, list[types.Diagnostic]]]:
    """Fixing all of a rule that a client asks about, where there is more than one to fix."""
    for code in dict.fromkeys(finding.code for finding, _ in about):
        one = replace(every, rule=code)
        if sum(map(one.applies, whole)) > 1:
            yield one, [item for finding, told in about if finding.code == code for item in told]

"""A rule's documentation where a finding is, or where a comment that silences findings names a code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from lsprotocol import types

from gpulint.documentation import page
from gpulint.findings import Finding
from gpulint.rule import Rule
from gpulint.selection import BUILT_IN
from gpulint.server.diagnostics import range_of
from gpulint.server.documents import Document
from gpulint.server.engine import Checked
from gpulint.suppressions import directives

_CODE: Final = re.compile(r"[A-Za-z]+[0-9]+")
_BUILT_IN_TEXT: Final = {
    "GPU000": "The file cannot be checked: it does not parse, or cannot be read.",
    "GPU001": "A comment of gpulint's silences nothing.",
}


def hover(document: Document, checked: Checked, place: types.Position) -> tuple[str, types.Range] | None:
    """Markdown and what it is about; None where there is nothing to say."""
    in_comment = _in_comment(document, checked.rules, place)
    if in_comment is not None:
        return in_comment
    found = [
        (finding, spot) for finding in checked.findings if _covers(spot := range_of(finding, document), place)
    ]
    if not found:
        return None
    return _told([finding for finding, _ in found], checked.rules), found[0][1]


def _covers(spot: types.Range, place: types.Position) -> bool:
    return spot.start <= place <= spot.end


def _told(findings: Iterable[Finding], rules: Sequence[type[Rule]]) -> str:
    parts: list[str] = []
    documented: list[str] = []
    for finding in findings:
        parts.append(f"**{finding.code}** {finding.message}")
        parts += [f"*{label}:* {text}" for label, text in _details(finding) if text]
        if finding.code not in documented:
            documented.append(finding.code)
    parts += [text for code in documented if (text := documentation(code, rules))]
    return "\n\n".join(parts)


def _details(finding: Finding) -> tuple[tuple[str, str], ...]:
    fix = finding.fix
    repair = f"{fix.message} ({fix.safety})" if fix is not None else ""
    doubt = f"{finding.doubt} (low confidence)" if finding.doubt else ""
    return (("reason", finding.reason), ("doubt", doubt), ("cost", finding.cost), ("fix", repair))


def documentation(code: str, rules: Sequence[type[Rule]]) -> str:
    """The page of a rule, a sentence for a built-in code, a list for a prefix of several; empty for no known code."""
    covered = [rule for rule in rules if rule.code.startswith(code)]
    if any(rule.code == code for rule in covered):
        return "---\n\n" + next(page(rule).markdown() for rule in covered if rule.code == code)
    if code in BUILT_IN:
        return f"**{code}** {BUILT_IN[code]}: {_BUILT_IN_TEXT[code]}"
    return "\n".join(f"- {rule.code} {rule.name}: {page(rule).summary}" for rule in covered)


def _in_comment(
    document: Document, rules: Sequence[type[Rule]], place: types.Position
) -> tuple[str, types.Range] | None:
    line = document.text.line(place.line)
    if "#" not in line:
        return None
    column = document.text.column(place)
    for match in _CODE.finditer(line):
        if match.start() <= column <= match.end():
            break
    else:
        return None
    comments = (item for item in directives(document.content) if item.row == place.line + 1)
    if not any(item.start <= match.start() + 1 <= item.end for item in comments):
        return None
    text = documentation(match[0].upper(), rules)
    if not text:
        return None
    units = document.text.units
    spot = types.Range(
        types.Position(place.line, units(line[: match.start()])),
        types.Position(place.line, units(line[: match.end()])),
    )
    return text.removeprefix("---\n\n"), spot

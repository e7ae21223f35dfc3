"""What is to say about a line: its findings with their rules' documentation, every claim that was considered there, and
what the codes in a comment that silences mean."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import Final

from lsprotocol import types

from gpulint.answers import Verdict
from gpulint.findings import Finding
from gpulint.lint.documentation import page
from gpulint.lint.explaining import SILENT, Explained, line_of, sign_of
from gpulint.lint.selection import BUILT_IN
from gpulint.lint.suppressions import directives
from gpulint.rule import Rule
from gpulint.server.checks import Checked
from gpulint.server.diagnostics import range_of
from gpulint.server.documents import Document

_CODE: Final = re.compile(r"[A-Za-z]+[0-9]+")
_BUILT_IN_TEXT: Final = {
    "GPU000": "The file cannot be checked: it does not parse, or cannot be read.",
    "GPU001": "A comment of gpulint's silences nothing.",
}


Told = tuple[str, types.Range]  # Markdown, and what it is about


def hover(
    document: Document, checked: Checked, claims: Iterable[Explained], place: types.Position
) -> Told | None:
    """Markdown and what it is about; None where there is nothing to say."""
    in_comment = _in_comment(document, checked.rules, place)
    if in_comment is not None:
        return in_comment
    spots = [(finding, range_of(finding, document)) for finding in checked.findings]
    found = [(finding, spot) for finding, spot in spots if spot.start <= place <= spot.end]
    here = [one for one in claims if one.is_at(place.line + 1)]
    if not found and not here:
        return None
    spot = found[0][1] if found else _line(document, place.line)
    return _told([finding for finding, _ in found], here, checked.rules), spot


def explanation(document: Document, checked: Checked, claims: Iterable[Explained], row: int) -> str:
    """Markdown about a line, counted from 0: its findings, every claim that was considered there and each of its answers."""
    found = [item for item in checked.findings if item.line <= row + 1 <= item.end_line]
    here = [one for one in claims if one.is_at(row + 1)]
    code = document.text.line(row).strip()
    head = f"# Line {row + 1}\n\n" + (f"```python\n{code}\n```\n\n" if code else "")
    if not found and not here:
        return head + "No rule in force considered anything in this line.\n"
    return head + _told(found, here, checked.rules, tuple(Verdict)) + "\n"


def _line(document: Document, row: int) -> types.Range:
    text = document.text.line(row)
    return _span(document, row, len(text) - len(text.lstrip()), len(text.rstrip()))


def _span(document: Document, row: int, start: int, end: int) -> types.Range:
    """The part of a line between two of its characters."""
    text, units = document.text.line(row), document.text.units
    return types.Range(types.Position(row, units(text[:start])), types.Position(row, units(text[:end])))


def _told(
    findings: Sequence[Finding],
    claims: Iterable[Explained],
    rules: Sequence[type[Rule]],
    of_untold: Container[Verdict] = (Verdict.REFUTED,),
) -> str:
    """The findings with the answers that they stand on, what else was considered in the line, and the findings' rules."""
    parts: list[str] = []
    others = list(claims)
    for finding in findings:
        parts.append(f"**{finding.code}** {finding.message}")
        parts += [f"*{label}:* {text}" for label, text in _details(finding) if text]
        own = [one for one in others if _is_of(one, finding)]
        parts += [_answers(one, tuple(Verdict)) for one in own[:1] if one.answers]
        others = [one for one in others if one not in own]
    parts += [_considered(one, of_untold) for one in others]
    documented = dict.fromkeys(finding.code for finding in findings)
    parts += [text for code in documented if (text := documentation(code, rules))]
    return "\n\n".join(parts)


def _is_of(one: Explained, finding: Finding) -> bool:
    return (one.code, one.row, one.column) == (finding.code, finding.line, finding.column)


def _considered(one: Explained, of_untold: Container[Verdict]) -> str:
    """A claim without its finding; of one that does not hold the answers `of_untold`."""
    about = f" `{one.subject}`" if one.subject else ""
    silent = one.outcome == SILENT
    parts = (
        f"**{one.code}** {one.name}:{about} {one.outcome}",
        "" if silent else one.message,
        _answers(one, of_untold if silent else tuple(Verdict)),
    )
    return "\n\n".join(filter(None, parts))


def _answers(one: Explained, shown: Container[Verdict]) -> str:
    return "\n".join(
        f"- *{because.answer.question.value}* {sign_of(because.answer)}: "
        f"{because.answer.clause}{line_of(because, one)}"
        for because in one.answers
        if because.answer.verdict in shown
    )


def _details(finding: Finding) -> tuple[tuple[str, str], ...]:
    fix = finding.fix
    repair = f"{fix.message} ({fix.safety})" if fix is not None else ""
    return (
        ("reason", finding.reason),
        ("doubt", finding.doubt),
        ("cost", finding.cost),
        ("measured elsewhere", finding.measured),
        ("fix", repair),
    )


def documentation(code: str, rules: Sequence[type[Rule]]) -> str:
    """The page of a rule, a sentence for a built-in code, a list for a prefix of several; empty for no known code."""
    covered = [rule for rule in rules if rule.code.startswith(code)]
    if any(rule.code == code for rule in covered):
        return "---\n\n" + next(page(rule).markdown() for rule in covered if rule.code == code)
    if code in BUILT_IN:
        return f"**{code}** {BUILT_IN[code]}: {_BUILT_IN_TEXT[code]}"
    return "\n".join(f"- {rule.code} {rule.name}: {page(rule).summary}" for rule in covered)


def _in_comment(document: Document, rules: Sequence[type[Rule]], place: types.Position) -> Told | None:
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
    return text.removeprefix("---\n\n"), _span(document, place.line, match.start(), match.end())

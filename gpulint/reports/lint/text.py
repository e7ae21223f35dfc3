"""The format for people: where, what, the source line with the span underlined, why, what it costs, and the
fix.

::

    train.py:12:9: error[GPU101] `total` holds the autograd graph of every `loss`
       |
    12 |         total += loss
       |         ^^^^^^^^^^^^^
       |
       = reason: ...
       = cost:   ...
                 measured elsewhere: ...
       = fix:    add up `loss.item()` (safe)
            - total += loss
            + total += loss.item()

Findings of one file that say the same are told once, with all their places. What a rule has measured elsewhere is told
with its first finding of a run.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TextIO

from gpulint.findings import Edit, Finding, Fix, Position
from gpulint.reports import Report, place, place_in, shown
from gpulint.reports.document import Excerpt
from gpulint.reports.excerpts import MOST_LINES, cut, excerpt_lines, gutter, headline, note, room
from gpulint.reports.layout import Line, linked, paint, printable
from gpulint.reports.lint.summary import summary
from gpulint.source.files import split_lines


def write(report: Report, out: TextIO) -> None:
    paint(_lines(report), out, report.colour)


def _lines(report: Report) -> Iterator[Line]:
    told: set[str] = set()
    for finding, *others in _grouped(report.findings):
        lines = partial(report.sources.lines, finding.filename)
        if finding.measured in told and not report.everything:
            finding = replace(finding, measured="")
        told.add(finding.measured)
        yield from finding_lines(finding, lines(finding.cell), report.width, lines, others, report.links)
        yield []
    yield from summary(report)
    yield from _hint(report)


def _hint(report: Report) -> Iterator[Line]:
    """On a terminal, where more is said about what was found."""
    code = next((finding.code for finding in report.findings if not finding.is_diagnostic), None)
    if code is not None and report.width is not None and not report.quiet:
        yield [(f"gpulint rule {code}", "code"), (" says more about a rule.", "faint")]


def _grouped(findings: list[Finding]) -> list[list[Finding]]:
    """Those of one file that differ in nothing but their place, together."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in findings:
        fix = one.fix and (one.fix.message, one.fix.safety)
        key = (one.filename, one.code, one.severity, one.message, one.reason, one.cost, one.doubts, fix)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def finding_lines(
    finding: Finding,
    source: list[str],
    columns: int | None = None,
    cells: Callable[[int | None], list[str]] | None = None,
    others: Sequence[Finding] = (),
    links: bool = False,
) -> list[Line]:
    """One finding. `source` are the lines of its file or cell; `columns` the terminal's width, None for no wrapping.

    `cells` gives the lines of other cells, which a fix may change too; `others` say the same of other places.
    """
    lines = _headline(finding, columns, len(others) + 1, links)
    shown = _excerpt(finding, source)
    margin = len(str(max(finding.line, finding.end_line)))
    excerpt = excerpt_lines(shown, margin, columns, finding.severity.value) if shown is not None else []
    notes = _notes(finding, cells or (lambda _: source), margin, columns)
    if others:
        notes += note("also", ", ".join(map(place, others)), margin, columns)
    if excerpt:
        lines += [gutter(margin), *excerpt]
        if notes:
            lines.append(gutter(margin))
    return lines + notes


def _headline(finding: Finding, columns: int | None, times: int, links: bool) -> list[Line]:
    """Where and what, broken at words."""
    lead: Line = [
        (printable(shown(finding.filename)), "path"),
        (f":{place(finding)}: ", "faint"),
        *_label(finding, links),
        (" ", ""),
    ]
    return headline(lead, finding.message, columns, times)


def _label(finding: Finding, links: bool) -> Line:
    style, word = finding.severity.value, finding.severity.word
    if not links:
        return [(f"{word}[{finding.code}]", style)]
    return [(f"{word}[", style), (finding.code, linked(style, finding.url)), ("]", style)]


def _excerpt(finding: Finding, source: list[str]) -> Excerpt | None:
    if finding.name == "internal-error":
        return None
    return Excerpt(source, finding.line, finding.column, finding.end_line, finding.end_column)


def _notes(
    finding: Finding, cells: Callable[[int | None], list[str]], margin: int, columns: int | None
) -> list[Line]:
    said = (("reason", finding.reason), ("doubt", finding.doubt), ("cost", finding.cost))
    lines = [line for label, text in said if text for line in note(label, text, margin, columns)]
    if finding.measured:
        measured = note("cost", f"measured elsewhere: {finding.measured}", margin, columns)
        if finding.cost:
            measured[0] = [(" " * (margin + 1 + len("= reason: ")), ""), *measured[0][2:]]
        lines += measured
    for other in finding.related:
        where = place_in(other.cell, other.position.row, other.position.column)
        lines += note("see", f"{shown(other.filename)}:{where}: {other.message}", margin, columns)
    if finding.fix is not None:
        how = finding.fix.safety
        shown_how = "unsafe: read it first" if how == "unsafe" else how
        lines += note("fix", f"{finding.fix.message} ({shown_how})", margin, columns)
        lines += _preview(finding.fix, cells, margin, columns)
    return lines


def _preview(
    fix: Fix, cells: Callable[[int | None], list[str]], margin: int, columns: int | None
) -> list[Line]:
    """The lines that a fix takes out and puts in; nothing where they are many."""
    changed: list[tuple[str, str]] = []
    for cell in dict.fromkeys(edit.cell for edit in fix.edits):
        inside = changed_lines(tuple(edit for edit in fix.edits if edit.cell == cell), cells(cell))
        if inside is None:
            return []
        changed += inside
    if not 0 < len(changed) <= MOST_LINES:
        return []
    texts = textwrap.dedent("\n".join(printable(text) or " " for _, text in changed)).split("\n")
    styles = {"-": "removed", "+": "added"}
    lead = " " * (margin + 1 + len("= reason: "))
    left = room(columns, len(lead) + 2)
    return [
        [(lead, ""), (f"{sign} {cut(text, left)}", styles[sign])]
        for (sign, _), text in zip(changed, texts, strict=True)
    ]


def changed_lines(edits: tuple[Edit, ...], source: list[str]) -> list[tuple[str, str]] | None:
    """The difference that `edits` make as ("-", line) and ("+", line); None where they do not fit the source."""
    if not edits:
        return None
    first = min(edit.start.row for edit in edits)
    last = min(max(edit.end.row for edit in edits), len(source))
    if first == last + 1:  # new lines at the end of a notebook's cell
        return [("+", line) for edit in edits for line in split_lines(edit.content.rstrip("\r\n"))]
    if not 1 <= first <= last or last - first > 60:
        return None
    before = source[first - 1 : last]
    after = "\n".join(before)
    try:
        for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
            start, end = _offset(before, edit.start, first), _offset(before, edit.end, first)
            after = after[:start] + edit.content + after[end:]
    except IndexError:
        return None
    return _difference(before, after.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def _offset(lines: list[str], place: Position, first: int) -> int:
    row = place.row - first
    if row == len(lines) and place.column == 1:
        return sum(len(line) + 1 for line in lines) - 1
    return sum(len(line) + 1 for line in lines[:row]) + min(place.column - 1, len(lines[row]))


def _difference(before: list[str], after: list[str]) -> list[tuple[str, str]]:
    from difflib import SequenceMatcher

    changes: list[tuple[str, str]] = []
    for tag, start, end, new_start, new_end in SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            changes += [("-", line) for line in before[start:end]]
            changes += [("+", line) for line in after[new_start:new_end]]
    return changes

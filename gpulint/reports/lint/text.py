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
from typing import Final, TextIO

from gpulint.findings import Edit, Finding, Fix, Position
from gpulint.reports import Report, place, place_in, shown
from gpulint.reports.layout import Line, linked, paint, printable, quoted, width
from gpulint.reports.lint.summary import summary
from gpulint.source.files import split_lines

_LONGEST: Final = 160  # columns of a source line shown, around the span, where there is no terminal
_SHORTEST: Final = 40  # on one that has hardly any
_INDENT: Final = "    "  # of a headline's further lines
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_MOST_LINES: Final = 6  # of a span over many lines, and of a fix's preview


def write(report: Report, out: TextIO) -> None:
    paint(_lines(report), out, report.colour)


def _lines(report: Report) -> Iterator[Line]:
    told: set[str] = set()
    for finding, *others in _grouped(report.findings):
        lines = partial(report.sources.lines, finding.filename)
        if finding.measured in told and not report.everything:
            finding = replace(finding, measured="")
        told.add(finding.measured)
        yield from finding_lines(
            finding, lines(finding.cell), report.unsafe, report.width, lines, others, report.links
        )
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
    unsafe: bool = False,
    columns: int | None = None,
    cells: Callable[[int | None], list[str]] | None = None,
    others: Sequence[Finding] = (),
    links: bool = False,
) -> list[Line]:
    """One finding. `source` are the lines of its file or cell; `columns` the terminal's width, None for no wrapping.

    `cells` gives the lines of other cells, which a fix may change too; `others` say the same of other places.
    """
    lines = _headline(finding, columns, len(others) + 1, links)
    margin = len(str(max(finding.line, finding.end_line)))
    gutter: Line = [(" " * (margin + 1) + "|", "gutter")]
    excerpt = _excerpt(finding, source, margin, columns)
    notes = _notes(finding, unsafe, cells or (lambda _: source), margin, columns)
    if others:
        notes += _note("also", ", ".join(map(place, others)), margin, columns)
    if excerpt:
        lines += [gutter, *excerpt]
        if notes:
            lines.append(gutter)
    return lines + notes


def _headline(finding: Finding, columns: int | None, times: int, links: bool) -> list[Line]:
    """Where and what, broken at words."""
    lead: Line = [
        (printable(shown(finding.filename)), "path"),
        (f":{place(finding)}: ", "faint"),
        *_label(finding, links),
        (" ", ""),
    ]
    message = printable(finding.message)
    if columns is None:
        return [[*lead, *quoted(message + (f" × {times}" if times > 1 else ""))]]
    message += f"{_NO_BREAK}×{_NO_BREAK}{times}" if times > 1 else ""
    filled = sum(width(text) for text, _ in lead)
    first, *more = textwrap.wrap(
        message,
        max(columns, _SHORTEST),
        initial_indent=" " * filled,
        subsequent_indent=_INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    ) or [""]
    first, *more = (line.replace(_NO_BREAK, " ") for line in (first[filled:], *(line[4:] for line in more)))
    return [[*lead, *quoted(first)], *([(_INDENT, ""), *quoted(line)] for line in more)]


def _label(finding: Finding, links: bool) -> Line:
    style, word = finding.severity.value, finding.severity.word
    if not links:
        return [(f"{word}[{finding.code}]", style)]
    return [(f"{word}[", style), (finding.code, linked(style, finding.url)), ("]", style)]


def _excerpt(finding: Finding, source: list[str], margin: int, columns: int | None) -> list[Line]:
    """The lines of the span, each with its part underlined."""
    if not 1 <= finding.line <= len(source) or not any(source) or finding.name == "internal-error":
        return []
    last = min(max(finding.end_line, finding.line), len(source))
    if last > finding.line and last == finding.end_line and finding.end_column == 1:
        last -= 1  # the span ends with the line before
    rows = list(range(finding.line, last + 1))
    lines: list[Line] = []
    for row in rows:
        if len(rows) > _MOST_LINES and _MOST_LINES // 2 <= row - rows[0] < len(rows) - _MOST_LINES // 2:
            if row - rows[0] == _MOST_LINES // 2:
                lines.append([("." * 3, "gutter")])
            continue
        lines += _underlined(finding, source[row - 1], row, margin, _room(columns, margin + 3))
    return lines


def _room(columns: int | None, taken: int) -> int:
    """The columns that a line of source may take beside what stands before it."""
    return max(columns - taken, _SHORTEST) if columns else _LONGEST


def _underlined(finding: Finding, line: str, row: int, margin: int, room: int) -> list[Line]:
    start = finding.column - 1 if row == finding.line else len(line) - len(line.lstrip())
    end = finding.end_column - 1 if row == finding.end_line else len(line.rstrip())
    start = min(start, len(line))
    end = min(max(end, start), len(line))
    parts = (printable(line[:start]), printable(line[start:end]), printable(line[end:]))
    before, span, after = _window(*parts, room)
    marks = "^" * max(width(span), 1)
    return [
        [(f"{row:>{margin}} | ", "gutter"), (before + span + after, "")],
        [(" " * (margin + 1) + "| ", "gutter"), (" " * width(before), ""), (marks, finding.severity.value)],
    ]


def _window(before: str, span: str, after: str, room: int) -> tuple[str, str, str]:
    """The three parts of a line, cut where the line is too long to show: what one side leaves over the other takes."""
    if width(before + span + after) <= room:
        return before, span, after
    span = _cut(span, max(room // 2, room - width(before + after)))
    left = room - width(span)
    half = left // 2
    before = _cut(before[::-1], max(half, left - width(after)))[::-1]
    return before, span, _cut(after, left - width(before))


def _cut(text: str, room: int) -> str:
    """As much of a text as has room, with a sign where more follows."""
    if width(text) <= room:
        return text
    cut = text[: max(room - 1, 0)]
    while cut and width(cut) >= room:
        cut = cut[:-1]
    return cut + "…"


def _notes(
    finding: Finding,
    unsafe: bool,
    cells: Callable[[int | None], list[str]],
    margin: int,
    columns: int | None,
) -> list[Line]:
    lines: list[Line] = []
    if finding.reason:
        lines += _note("reason", finding.reason, margin, columns)
    if finding.doubt:
        lines += _note("doubt", finding.doubt, margin, columns)
    if finding.cost:
        lines += _note("cost", finding.cost, margin, columns)
    if finding.measured:
        measured = _note("cost", f"measured elsewhere: {finding.measured}", margin, columns)
        if finding.cost:
            measured[0] = [(" " * (margin + 1 + len("= reason: ")), ""), *measured[0][2:]]
        lines += measured
    for other in finding.related:
        where = place_in(other.cell, other.position.row, other.position.column)
        lines += _note("see", f"{shown(other.filename)}:{where}: {other.message}", margin, columns)
    if finding.fix is not None:
        how = finding.fix.safety
        shown_how = "unsafe: read it first" if how == "unsafe" else how
        lines += _note("fix", f"{finding.fix.message} ({shown_how})", margin, columns)
        lines += _preview(finding.fix, cells, margin, columns)
    return lines


def _note(label: str, text: str, margin: int, columns: int | None) -> list[Line]:
    lead = " " * (margin + 1)
    indent = len(lead) + len("= reason: ")
    text = printable(text.replace("\n", " "))
    room = max(columns - indent, _SHORTEST) if columns else None
    wrapped = textwrap.wrap(text, room, break_on_hyphens=False) if room else [text]
    lines: list[Line] = [[(lead + "= ", "gutter"), (f"{label}:".ljust(8), "label"), *quoted(wrapped[0])]]
    return lines + [[(" " * indent, ""), *quoted(more)] for more in wrapped[1:]]


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
    if not 0 < len(changed) <= _MOST_LINES:
        return []
    texts = textwrap.dedent("\n".join(printable(text) or " " for _, text in changed)).split("\n")
    styles = {"-": "removed", "+": "added"}
    lead = " " * (margin + 1 + len("= reason: "))
    room = _room(columns, len(lead) + 2)
    return [
        [(lead, ""), (f"{sign} {_cut(text, room)}", styles[sign])]
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

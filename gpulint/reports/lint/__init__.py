"""The formats for people, with their last line and what `--statistics` counts. The first: where, what, the source line with the span underlined, why, what it costs, and the
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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TextIO

from gpulint.findings import Edit, Finding, Fix, Related, Severity
from gpulint.reports import Report, place, place_in, plural, shown_path
from gpulint.reports.layout import MOST_LINES, Excerpt, Line, cut, described, note, paint, printable, room
from gpulint.source.edits import rewritten
from gpulint.source.files import split_lines

if TYPE_CHECKING:
    from gpulint.rule import Rule

_INDENT: Final = 1 + len("= reason: ")  # of a note's text, beside the margin
_MOST_ROWS: Final = 60  # that a fix reaches over, where it is shown


def write_text(report: Report, out: TextIO) -> None:
    paint(_lines(report), out, report.colour)


def _lines(report: Report) -> Iterator[Line]:
    told: set[str] = set()
    for finding, *others in _grouped(report.findings):
        if finding.measured in told and not report.everything:
            finding = replace(finding, measured="")
        told.add(finding.measured)
        lines = partial(report.sources.lines, finding.filename)
        yield from finding_lines(finding, lines, report.width, others, report.links)
        yield []
    yield from summary(report)
    yield from _hint(report)


def gathered(findings: Iterable[Finding], rules: Iterable[type[Rule]]) -> list[Finding]:
    """The same with one finding for each name of a file where a rule speaks of names: with the other places, and a fix for all."""
    of_names = {rule.code for rule in rules if rule.of_names}
    groups: dict[object, list[Finding]] = {}
    for one in findings:
        name = (one.filename, one.code, one.subject, one.severity, one.doubts, one.fix and one.fix.safety)
        groups.setdefault(name if one.code in of_names else id(one), []).append(one)
    return [_together(*several) for several in groups.values()]


def _together(first: Finding, *others: Finding) -> Finding:
    related = (Related(one.filename, one.start, "the same name", one.cell) for one in others)
    fix = first.fix
    if fix is not None:
        edits = (edit for one in (first, *others) if one.fix is not None for edit in one.fix.edits)
        fix = replace(fix, edits=tuple(dict.fromkeys(edits)))
    return replace(first, fix=fix, related=(*first.related, *related))


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


Cells = Callable[[int | None], list[str]]  # gives the lines of a cell, or of the file


def finding_lines(
    finding: Finding,
    cells: Cells,
    columns: int | None = None,
    others: Sequence[Finding] = (),
    links: bool = False,
) -> list[Line]:
    """One finding; `others` say the same of other places."""
    style, word = finding.severity.value, finding.severity.word
    lead: Line = [(printable(shown_path(finding.filename)), "path"), (f":{place(finding)}: ", "faint")]
    if links:
        lead += [(f"{word}[", style), (finding.code, f"{style} link {finding.url}"), ("]", style), (" ", "")]
    else:
        lead += [(f"{word}[{finding.code}]", style), (" ", "")]
    span = (finding.line, finding.column, finding.end_line, finding.end_column)
    excerpt = Excerpt(cells(finding.cell) if finding.name != "internal-error" else [], *span)
    facts = list(_facts(finding))
    lines = described(lead, finding.message, excerpt, style, facts, columns, len(others) + 1)
    if finding.fix is not None:
        lines += _preview(finding.fix, cells, excerpt.margin, columns)
    if others:
        lines += note("also", ", ".join(map(place, others)), excerpt.margin, columns)
    return lines


def _facts(finding: Finding) -> Iterator[tuple[str, str]]:
    said = (("reason", finding.reason), ("doubt", finding.doubt), ("cost", finding.cost))
    yield from (fact for fact in said if fact[1])
    if finding.measured:
        yield "" if finding.cost else "cost", f"measured elsewhere: {finding.measured}"
    told: dict[tuple[str, str], list[str]] = {}
    for other in finding.related:
        where = place_in(other.cell, other.position.row, other.position.column)
        told.setdefault((shown_path(other.filename), other.message), []).append(where)
    for (path, message), places in told.items():
        yield "see", f"{path}:{', '.join(places)}: {message}"
    if finding.fix is not None:
        how = finding.fix.safety
        yield "fix", f"{finding.fix.message} ({'unsafe: read it first' if how == 'unsafe' else how})"


def _preview(fix: Fix, cells: Cells, margin: int, columns: int | None) -> list[Line]:
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
    lead = (" " * (margin + _INDENT), "")
    left = room(columns, margin + _INDENT + 2)
    return [
        [lead, (f"{sign} {cut(text, left)}", "removed" if sign == "-" else "added")]
        for (sign, _), text in zip(changed, texts, strict=True)
    ]


def changed_lines(edits: tuple[Edit, ...], source: list[str]) -> list[tuple[str, str]] | None:
    """The difference that `edits` make as ("-", line) and ("+", line); None where they do not fit the source."""
    from difflib import unified_diff

    first = min((edit.start.row for edit in edits), default=0)
    last = max((edit.end.row for edit in edits), default=0)
    if not first or last - first > _MOST_ROWS:
        return None
    try:
        new = split_lines(rewritten("".join(f"{line}\n" for line in source), edits))
    except ValueError:
        return None
    if not new[-1]:
        new.pop()  # the end of the last line
    before, new = source[first - 1 : last], new[first - 1 : len(new) - max(0, len(source) - last)]
    lines = list(unified_diff(before, new, n=0, lineterm=""))[2:]
    return [(line[0], line[1:]) for line in lines if line[0] != "@"]


# -- a line a finding ------------------------------------------------------------------------------------------


def write_concise(report: Report, out: TextIO) -> None:
    """One line a finding: ``path:row:column: CODE message``, as ruff, flake8 and editors' error formats have it."""
    lines: list[Line] = [
        [(printable(shown_path(one.filename)), "path"), (f":{place(one)}: ", "faint"), *_told(one, report)]
        for one in report.findings
    ]
    paint(lines + summary(report), out, report.colour)


def write_grouped(report: Report, out: TextIO) -> None:
    """A file's findings below its name, as ruff has them."""
    lines: list[Line] = []
    for path, group in groupby(report.findings, key=lambda finding: finding.filename):
        findings = list(group)
        width = max(len(place(finding)) for finding in findings)
        lines.append([(printable(shown_path(path)), "path"), (":", "faint")])
        lines += ([(f"  {place(one):<{width}} ", "faint"), *_told(one, report)] for one in findings)
        lines.append([])
    paint(lines + summary(report), out, report.colour)


def _told(finding: Finding, report: Report) -> Line:
    """The rule, `[*]` where --fix mends it, and the message."""
    style = finding.severity.value
    mark = "[*] " if finding.is_mended(report.unsafe) else ""
    code = (finding.code, f"{style} link {finding.url}" if report.links else style)
    return [code, (" ", ""), (mark, "fix"), (printable(finding.message), "")]


# -- the last line, and counts ---------------------------------------------------------------------------------


def summary(report: Report) -> list[Line]:
    """``Found 3 findings (1 error, 2 warnings). 2 fixable with --fix.``"""
    fixed = list(_fixes(report)) if report.show_fixes else []
    if report.quiet:
        return fixed
    if not report.findings:
        return [*fixed, [(_nothing_left(report), "good"), *_doubtful(report)]]
    parts: Line = []
    for severity in Severity:
        if number := report.count(severity):
            parts += [(", " if parts else "", ""), (plural(number, severity.word), severity.value)]
    left = len(report.findings)
    mended = f"Fixed {plural(len(report.fixed), 'finding')}, {left} left ("
    opening = mended if report.fixed else f"Found {plural(left, 'finding')} ("
    return [*fixed, [(opening, "strong"), *parts, (").", "strong"), *_fixable(report), *_doubtful(report)]]


def _nothing_left(report: Report) -> str:
    if report.fix_only:
        return f"Fixed {plural(len(report.fixed), 'finding')}; --fix-only tells of no others."
    if report.fixed:
        return f"Fixed {plural(len(report.fixed), 'finding')}; none left."
    return f"No findings in {plural(report.checked, 'file')}."


def _doubtful(report: Report) -> Line:
    """How much is less certain than what is shown."""
    if not report.doubtful or report.fix_only:
        return []
    return [(f" {report.doubtful} more with doubts: ", ""), ("--confidence low", "fix"), (".", "")]


def _fixes(report: Report) -> Iterator[Line]:
    """What --show-fixes lists: file by file, how often which rule."""
    if report.fixed:
        yield [("Fixed:", "strong")]
    for filename in dict.fromkeys(finding.filename for finding in report.fixed):
        yield [(f"  {printable(shown_path(filename))}", "path")]
        counts = Counter((one.code, one.name) for one in report.fixed if one.filename == filename)
        for (code, name), number in counts.items():
            yield [(f"    {number} × ", ""), (code, "code"), (f" {name}", "")]


def _fixable(report: Report) -> Line:
    """How many of the findings --fix mends, and how many more with --unsafe-fixes."""
    fixable = sum(finding.is_mended(unsafe=True) for finding in report.findings)
    mended = sum(finding.is_mended(report.unsafe) for finding in report.findings)
    both, line = "--fix --unsafe-fixes", []
    if mended:
        line += [(f" {mended} fixable with ", ""), (both if report.unsafe else "--fix", "fix"), (".", "")]
    if fixable > mended:
        more = "more" if mended else "fixable"
        line += [(f" {fixable - mended} {more} with ", ""), (both, "fix"), (".", "")]
    return line


@dataclass(frozen=True, slots=True)
class Counted:
    """How often a rule speaks, and how many of these --fix mends."""

    code: str
    name: str
    count: int
    fixable_count: int

    def to_json(self) -> dict[str, Any]:
        """With `fixable`, as ruff has it: whether all are mended."""
        return {**asdict(self), "fixable": self.fixable_count == self.count}


def statistics(report: Report) -> list[Counted]:
    """Counts by rule, the most frequent first."""
    counts = Counter((finding.code, finding.name) for finding in report.findings)
    fixable = Counter(finding.code for finding in report.findings if finding.is_mended(report.unsafe))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [Counted(code, name, number, fixable[code]) for (code, name), number in ordered]


def table(counted: list[Counted]) -> Iterator[Line]:
    """Count, code, whether --fix mends all, ``[*]``, some, ``[-]``, or none, and name."""
    width = max((len(str(one.count)) for one in counted), default=1)
    for one in counted:
        mended = "*" if one.fixable_count == one.count else "-" if one.fixable_count else " "
        count = (f"{one.count:>{width}}  ", "strong")
        yield [count, (one.code, "code"), (f"  [{mended}] ", "fix"), (one.name, "")]

"""The last line of the formats for people, and what `--statistics` counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from gpulint.findings import Finding, Severity
from gpulint.reports import Report, plural, shown
from gpulint.reports.layout import Line, printable


def summary(report: Report) -> list[Line]:
    """``Found 3 findings (1 error, 2 warnings). 2 fixable with --fix.``"""
    fixed = list(_fixes(report)) if report.show_fixes else []
    if report.quiet:
        return fixed
    if not report.findings:
        return [*fixed, [(_nothing_left(report), "good"), *_doubtful(report)]]
    counts = [(severity, report.count(severity)) for severity in Severity]
    parts: Line = []
    for severity, number in counts:
        if number:
            parts += [(", " if parts else "", ""), (plural(number, severity.word), severity.value)]
    number = len(report.findings)
    if report.fixed:
        opening = f"Fixed {plural(len(report.fixed), 'finding')}, {number} left ("
    else:
        opening = f"Found {plural(number, 'finding')} ("
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
    counts = Counter((finding.filename, finding.code, finding.name) for finding in report.fixed)
    if counts:
        yield [("Fixed:", "strong")]
    for filename in dict.fromkeys(name for name, _, _ in counts):
        yield [(f"  {printable(shown(filename))}", "path")]
        for (where, code, name), number in counts.items():
            if where == filename:
                yield [(f"    {number} × ", ""), (code, "code"), (f" {name}", "")]


def _fixable(report: Report) -> Line:
    """How many of the findings --fix mends, and how many more with --unsafe-fixes."""
    fixable = sum(is_mended(finding, unsafe=True) for finding in report.findings)
    mended = sum(is_mended(finding, report.unsafe) for finding in report.findings)
    more = f" {fixable - mended}{' more' if mended else ' fixable'} with "
    both, flag = "--fix --unsafe-fixes", "--fix"
    line: Line = []
    if mended:
        line += [(f" {mended} fixable with ", ""), (both if report.unsafe else flag, "fix"), (".", "")]
    if fixable > mended:
        line += [(more, ""), (both, "fix"), (".", "")]
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
    fixable = Counter(finding.code for finding in report.findings if is_mended(finding, report.unsafe))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [Counted(code, name, number, fixable[code]) for (code, name), number in ordered]


def table(counted: list[Counted]) -> list[Line]:
    """Count, code, whether --fix mends all, ``[*]``, some, ``[-]``, or none, and name."""
    width = max((len(str(one.count)) for one in counted), default=1)
    return [
        [
            (f"{one.count:>{width}}  ", "strong"),
            (one.code, "code"),
            (
                f"  {'[*]' if one.fixable_count == one.count else '[-]' if one.fixable_count else '[ ]'} ",
                "fix",
            ),
            (one.name, ""),
        ]
        for one in counted
    ]


def is_mended(finding: Finding, unsafe: bool) -> bool:
    """Whether --fix, with --unsafe-fixes where these are asked for, mends a finding: what ``[*]`` stands for."""
    return finding.fix is not None and (unsafe or finding.fix.applicability == "safe")

"""The last line of the formats for people, and the `--statistics` table."""

from __future__ import annotations

from collections import Counter

from gpulint.findings import Finding, Severity
from gpulint.reports import Report, plural
from gpulint.reports.layout import Line

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)
_NOUNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def summary(report: Report) -> list[Line]:
    """``Found 3 findings (1 error, 2 warnings). 2 fixable with --fix.``"""
    if report.quiet:
        return []
    if not report.findings:
        done = f"Fixed {plural(len(report.fixed), 'finding')}; none left." if report.fixed else ""
        return [[(done or f"No findings in {plural(report.checked, 'file')}.", "good")]]
    counts = [(severity, report.count(severity)) for severity in _ORDER]
    parts: Line = []
    for severity, number in counts:
        if number:
            parts += [(", " if parts else "", ""), (plural(number, _NOUNS[severity]), severity.value)]
    number = len(report.findings)
    if report.fixed:
        opening = f"Fixed {plural(len(report.fixed), 'finding')}, {number} left ("
    else:
        opening = f"Found {plural(number, 'finding')} ("
    return [[(opening, "strong"), *parts, (").", "strong"), *_fixable(report)]]


def _fixable(report: Report) -> Line:
    safe = sum(finding.fix is not None and finding.fix.applicability == "safe" for finding in report.findings)
    unsafe = sum(
        finding.fix is not None and finding.fix.applicability == "unsafe" for finding in report.findings
    )
    if report.unsafe:
        safe, unsafe = safe + unsafe, 0
    flag = "--fix --unsafe-fixes" if report.unsafe else "--fix"
    line: Line = []
    if safe:
        line += [(f" {safe} fixable with ", ""), (flag, "fix"), (".", "")]
    if unsafe:
        line += [
            (f" {unsafe}{' more' if safe else ' fixable'} with ", ""),
            ("--fix --unsafe-fixes", "fix"),
            (".", ""),
        ]
    return line


def statistics(findings: list[Finding]) -> list[Line]:
    """A table of counts by rule, the most frequent first: count, code, how many are fixable, name."""
    counts = Counter((finding.code, finding.name) for finding in findings)
    fixable = Counter(finding.code for finding in findings if finding.fix is not None)
    width = max((len(str(number)) for number in counts.values()), default=1)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        [
            (f"{number:>{width}}  ", "strong"),
            (code, "code"),
            (f"  {'[*]' if fixable[code] else '[ ]'} ", "fix"),
            (name, ""),
        ]
        for (code, name), number in ordered
    ]

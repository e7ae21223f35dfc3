"""Findings and a run, verdicts: the verifier from end to end. It is given findings; `gpulint.verifying` lints for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpulint.findings import Confidence, Finding
from gpulint.runtime.parent import firstparty, source
from gpulint.runtime.parent.runner import Run, run
from gpulint.runtime.parent.verdict import Verification, verify
from gpulint.runtime.record.result import Progress, join_lines

UNAWAITED = ("handler", "code")  # kinds of claims about lines that a healthy run may never reach

OnProgress = Callable[[Progress], None]


def verification_of(
    what: Run,
    findings: Sequence[Finding],
    max_drift: int = 0,
    on_progress: OnProgress | None = None,
    least: Confidence = Confidence.LOW,
) -> Verification:
    """Run `what`, watched at the lines of `findings`, and judge them. Those below the confidence `least` are only kept where
    they are confirmed, and the run is not made longer for them."""
    awaited = [
        (f.filename, f.line, f.column)
        for f in findings
        if f.runtime_claim.kind not in UNAWAITED and f.confidence.reaches(least)
    ]
    watched = replace(
        what,
        lines=join_lines(lines_of(findings)),
        awaited=join_lines(awaited),
        evaluates=firstparty.evaluates(what.files()),
    )
    return verify(what.target, run(watched, on_progress), findings, max_drift, least)


def lines_of(findings: Sequence[Finding]) -> list[tuple[str, int, int]]:
    """The places whose figures the judges of these findings need."""
    lines = [(finding.filename, finding.line, finding.column) for finding in findings]
    for finding in findings:
        if finding.runtime_claim.kind == "late":
            watched = source.lines_to_watch(finding.filename, finding.line)
            lines += [(finding.filename, line, 0) for line in watched]
    return lines

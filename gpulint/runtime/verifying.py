"""Findings, run, verdicts: the verifier from end to end. `gpulint.verify` is `verify_program`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gpulint.config import CONFIDENCES, ConfigResolver, Overrides
from gpulint.findings import Confidence, Finding
from gpulint.runtime import firstparty, loops
from gpulint.runtime.claims import claim_of
from gpulint.runtime.result import REACH, Progress, join_lines
from gpulint.runtime.runner import Run, run
from gpulint.runtime.verdict import Verification, verify

UNAWAITED = ("handler", "code")  # kinds of claims about lines that a healthy run may never reach

OnProgress = Callable[[Progress], None]


def verify_program(
    target: str | os.PathLike[str],
    arguments: Iterable[str] = (),
    *,
    module: bool = False,
    findings: Iterable[Finding] | None = None,
    confidence: str | None = None,
    steps: int = 20,
    warmup: int | None = None,
    device: str = "auto",
    timeout: float | None = None,
    reach: float = REACH,
    cut_epochs: bool = False,
    max_drift: int = 0,
    python: str | os.PathLike[str] | None = None,
    launch: Iterable[str] = (),
    cwd: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    capture: bool = True,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Run sampled steps of a script (or, with `module`, of `python -m target`) and judge its findings.

    The program runs unchanged in a child process of `python` (default: this interpreter), with `arguments`,
    in `cwd`, with `environment` added to this process's. It is stopped after warm-up and `steps` sampled
    steps, at `timeout` seconds (None: never), or when it ends; `reach` are seconds it may take longer to come
    to lines with findings; `cut_epochs` lets epochs that have trained end early for that, and so changes what the program
    does from then on. Without `findings`, those of the script and its first-party imports are judged; of those
    with low confidence only what the run confirms is in the result, unless `confidence` (or, where it is None, the
    configuration of the script) is "low". Given `findings` are all in it.
    `device` is "auto", "cuda" or "cpu". `launch` are torchrun's flags, such as `("--nproc-per-node", "2")`.
    `max_drift` bytes a step on the GPU are allowed: `exit_code` and `drifting` of the result go by it.
    `capture` keeps the program's output in `result.run` instead of showing it. Never raises for what the
    program does: `result.run.end` tells. Raises ValueError for options that make no sense.
    """
    if device not in ("auto", "cuda", "cpu"):
        raise ValueError(f"device is {device!r}; it must be 'auto', 'cuda' or 'cpu'")
    if confidence not in (None, *CONFIDENCES):
        raise ValueError(f"confidence is {confidence!r}; it must be 'high', 'low' or None")
    where = os.fspath(cwd) if cwd is not None else None
    what = Run(
        os.fspath(target),
        tuple(arguments),
        module,
        os.fspath(python) if python is not None else sys.executable,
        steps,
        warmup,
        device,
        timeout,
        tuple(launch),
        reach=reach,
        cut_epochs=cut_epochs,
        capture=capture,
        cwd=where,
        environment=environment or {},
    )
    if findings is not None:
        return verification_of(what, list(findings), max_drift, on_progress)
    least = least_confidence(confidence, what.target, module, where)
    known = program_findings(what.target, module, where)
    return verification_of(what, known, max_drift, on_progress, least)


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
        if claim_of(f.code).kind not in UNAWAITED and f.confidence.reaches(least)
    ]
    script = firstparty.find_target(what.target, what.module, what.cwd)
    files = firstparty.first_party(script, what.module, what.cwd) if script is not None else []
    watched = replace(
        what,
        lines=join_lines(lines_of(findings)),
        awaited=join_lines(awaited),
        evaluates=firstparty.evaluates(files),
    )
    return verify(what.target, run(watched, on_progress), findings, max_drift, least)


def lines_of(findings: Sequence[Finding]) -> list[tuple[str, int, int]]:
    """The places whose figures the judges of these findings need."""
    lines = [(finding.filename, finding.line, finding.column) for finding in findings]
    for finding in findings:
        if claim_of(finding.code).kind == "late":
            watched = loops.lines_to_watch(finding.filename, finding.line)
            lines += [(finding.filename, line, 0) for line in watched]
    return lines


def program_findings(target: str, module: bool = False, cwd: str | None = None) -> list[Finding]:
    """The findings in a script (or module) and in its first-party imports, whatever their confidence: a run tells."""
    from gpulint.api import check_resolved

    script = firstparty.find_target(target, module, cwd)
    if script is None:
        return []
    files = set(firstparty.first_party(script, module, cwd))
    everything = ConfigResolver(overrides=Overrides(confidence=Confidence.LOW.value))
    return [finding for finding in check_resolved(sorted(files), everything) if finding.filename in files]


def least_confidence(
    asked: str | None, target: str, module: bool = False, cwd: str | None = None
) -> Confidence:
    """The confidence from which on findings are shown whatever a run says of them: as asked for, or by the configuration
    of the script. Raises `ConfigError`."""
    if asked is not None:
        return Confidence(asked)
    script = firstparty.find_target(target, module, cwd)
    if script is None:
        return Confidence.HIGH
    return ConfigResolver().for_directory(os.path.dirname(os.path.abspath(script))).confidence

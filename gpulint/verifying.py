"""`gpulint.verify`: the linter finds, the run tells. The only place where the two meet, besides the command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpulint.config import CONFIDENCES, ConfigResolver, Overrides
from gpulint.findings import Confidence, Finding
from gpulint.lint.checking import Checker
from gpulint.lint.engine import Options, run
from gpulint.runtime.parent import source
from gpulint.runtime.parent.runner import OnProgress, Run
from gpulint.runtime.parent.runner import run as follow
from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.parent.verdict import verify as judge
from gpulint.runtime.record.options import REACH, join_lines
from gpulint.runtime.record.peaks import Limits
from gpulint.runtime.record.result import Progress
from gpulint.source.discovery import discover
from gpulint.source.files import decode, read_bytes
from gpulint.testing.baselines import TOLERANCE
from gpulint.testing.gate import check, run_limited, subject_of
from gpulint.units import parse_bytes

UNAWAITED = ("handler", "code")  # kinds of claims about lines that a healthy run may never reach


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
        evaluates=source.evaluates(what.files()),
    )
    return judge(what.target, follow(watched, on_progress), findings, max_drift, least)


def verify(
    target: str | os.PathLike[str],
    arguments: Iterable[str] = (),
    *,
    module: bool = False,
    findings: Iterable[Finding] | None = None,
    confidence: str | None = None,
    steps: int = 20,
    warmup: int | None = None,
    step: str | None = None,
    units: Iterable[str] = (),
    device: str = "auto",
    timeout: float | None = None,
    reach: float = REACH,
    cut_epochs: bool = False,
    max_drift: int = 0,
    max_peak: int | str | None = None,
    baseline: str | os.PathLike[str] | None = None,
    write_baseline: bool = False,
    tolerance: float = TOLERANCE,
    exclusive: bool = False,
    untouched: int | str | None = None,
    max_host_drift: int | str | None = None,
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
    steps (of calls of the function `step`, where one is named; what outlives calls of `units` is growth as well), at `timeout` seconds (None: never), or when it ends; `reach` are seconds it may take longer to come
    to lines with findings; `cut_epochs` lets epochs that have trained end early for that, and so changes what the program
    does from then on. Without `findings`, those of the script and its first-party imports are judged; of those
    that are less certain than `confidence` (where it is None, than the configuration of the script asks for) only what the
    run confirms is in the result. Given `findings` are all in it.
    `device` is "auto", "cuda" or "cpu". `launch` are torchrun's flags, such as `("--nproc-per-node", "2")`.
    `max_drift` bytes a step on the GPU are allowed: `exit_code` and `drifting` of the result go by it.
    `max_peak` (bytes, or "8GiB") limits what is allocated at the highest point of the run; `baseline` is a file of committed
    peaks that this one may exceed by `tolerance` percent, and that gets it with `write_baseline`; `exclusive` does not run where
    another process uses a card that the program sees. `gate` of the result tells of these. They are about a GPU's
    memory: without one the run fails, unless `device` is "cpu".
    `untouched` are the bytes that may be alive on the GPU although nothing in the watched steps touches them, `max_host_drift` those
    that host memory may grow by in a step; None for no limit.
    `capture` keeps the program's output in `result.run` instead of showing it. Never raises for what the
    program does: `result.run.end` tells. Raises ValueError for options that make no sense, and for a baseline that cannot be
    read.
    """
    if device not in ("auto", "cuda", "cpu"):
        raise ValueError(f"device is {device!r}; it must be 'auto', 'cuda' or 'cpu'")
    if confidence not in (None, *CONFIDENCES):
        raise ValueError(f"confidence is {confidence!r}; it must be 'high', 'low' or None")
    limits = Limits(
        _bytes(max_peak),
        os.fspath(baseline) if baseline is not None else "",
        tolerance,
        write_baseline,
        exclusive,
        _bytes(untouched),
        _bytes(max_host_drift),
    )
    check(limits, device)
    where = os.fspath(cwd) if cwd is not None else None
    what = Run(
        os.fspath(target),
        tuple(arguments),
        os.fspath(python) if python is not None else sys.executable,
        timeout,
        tuple(launch),
        module=module,
        steps=steps,
        warmup=warmup,
        device=device,  # type: ignore[arg-type]  # checked above
        reach=reach,
        cut_epochs=cut_epochs,
        capture=capture,
        cwd=where,
        environment=environment or {},
    ).naming(step, tuple(units))
    if findings is not None:
        known, least = with_claims(findings), Confidence.LOW
    else:
        least = least_confidence(confidence, what.target, module, where)
        known = program_findings(what)

    def measure(run: Run, told: OnProgress) -> Verification:
        return verification_of(run, known, max_drift, both(told, on_progress), least)

    script = what.target if module or where is None else os.path.join(where, what.target)
    subject = subject_of(script, what.arguments, module, limits.baseline)
    command = f"gpulint.verify({what.target!r}, ..., write_baseline=True)"
    return run_limited(what, limits, subject, command, measure)


def lines_of(findings: Sequence[Finding]) -> list[tuple[str, int, int]]:
    """The places whose figures the judges of these findings need."""
    lines = [(finding.filename, finding.line, finding.column) for finding in findings]
    for finding in findings:
        if finding.runtime_claim.kind == "late":
            loop = source.around(finding.filename, finding.line)
            lines += [(finding.filename, statement.lineno, 0) for statement in loop]
    return lines


def _bytes(size: int | str | None) -> int | None:
    return parse_bytes(size) if isinstance(size, str) else size


def both(first: OnProgress, second: OnProgress | None) -> OnProgress:
    """What tells two listeners."""
    if second is None:
        return first

    def tell(progress: Progress) -> None:
        first(progress)
        second(progress)

    return tell


def program_findings(what: Run, place: str = "") -> list[Finding]:
    """The findings in a script (or module) and in its first-party imports, whatever their confidence: a run tells. A script that is
    made of something else is read as if it lay at `place`."""
    files = what.files()
    resolver = ConfigResolver(overrides=Overrides(confidence=Confidence.LOW.value))
    made = files[:1] if place else []
    known = discover(sorted(set(files).difference(made)), resolver, trusted=True)
    checked = run(known, Options(jobs=1, cache=False)).findings if known.targets else []
    found = [one for one in checked if one.filename in files]
    return [*(one for script in made for one in _findings_as_if_at(place, script, resolver)), *found]


def _findings_as_if_at(place: str, script: str, resolver: ConfigResolver) -> Iterator[Finding]:
    checker = Checker((resolver.for_directory(os.path.dirname(place)),), hashing=False)
    for found in checker.check_text(decode(script, read_bytes(script)).text, place).findings:
        related = (replace(one, filename=script) if one.filename == place else one for one in found.related)
        yield replace(found, filename=script, related=tuple(related))


def least_confidence(
    asked: str | None, target: str, module: bool = False, cwd: str | None = None
) -> Confidence:
    """The confidence from which on findings are shown whatever a run says of them: as asked for, or by the configuration
    of the script. Raises `ConfigError`."""
    if asked is not None:
        return Confidence(asked)
    script = source.find_target(target, module, cwd)
    if script is None:
        return Confidence.HIGH
    return ConfigResolver().for_directory(os.path.dirname(os.path.abspath(script))).confidence


def with_claims(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, each of a shipped rule with a claim: those that an older gpulint wrote, or somebody made by hand, get
    their rule's."""
    given = list(findings)
    if all(finding.claim is not None for finding in given):
        return given
    from gpulint.rules import all_rules

    claims = {rule.code: rule.runtime_claim for rule in all_rules()}
    return [replace(finding, claim=finding.claim or claims.get(finding.code)) for finding in given]

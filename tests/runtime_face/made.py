"""What runs have measured, made up for the judges and the reports."""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpulint.rules import all_rules

from gpulint.findings import Finding, Severity
from gpulint.reports.terminal import write
from gpulint.reports.verify import document
from gpulint.runtime.parent.verdict import Verification, verify
from gpulint.runtime.record.result import (
    Drift,
    End,
    Environment,
    Held,
    Holder,
    LineFigures,
    RankResult,
    RunResult,
    Sample,
    Site,
    StepKind,
)

MIB = 1 << 20
FILE = "/project/train.py"
SITE = Site("/project/model.py", 8, "forward")
CLAIMS = {rule.code: rule.runtime_claim for rule in all_rules()}


def finding(code: str = "GPU101", line: int = 12, subject: str = "total", **more: Any) -> Finding:
    place = (FILE, line, 9, line, 30)
    base = Finding(code, "a-rule", Severity.WARNING, "what people read", *place, subject=subject)
    return replace(base, **{"claim": CLAIMS.get(code), **more})


def samples(
    amounts: Sequence[int] = (1000,) * 20,
    kind: StepKind = "train",
    warmup: int = 0,
    begin: float = 0.0,
    duration: float = 0.02,
    **more: Any,
) -> list[Sample]:
    """One loop of steps, of which the first are warm-up."""
    steps = enumerate(amounts, start=1)
    return [Sample(n, kind, n > warmup, begin + n, duration, allocated=size, **more) for n, size in steps]


def environment(device: str = "cuda", **more: Any) -> Environment:
    probe = "cuda-allocator" if device == "cuda" else "host-storages"
    base = Environment("3.12", "python", "linux", "2026-01-01", "2.11", device, probe=probe)  # type: ignore[arg-type]
    return replace(base, **more)


def rank(
    steps: Sequence[Sample] | None = None, device: str = "cuda", number: int = 0, **more: Any
) -> RankResult:
    taken = tuple(samples(peak=2000, rss=1) if steps is None else steps)
    end = End("stopped", "stopped")
    return replace(RankResult(number, 1, environment(device), end, "optimizer", 3, taken), **more)


def run(*ranks: RankResult, **more: Any) -> RunResult:
    end = ranks[0].end if ranks else End("not-started", "no interpreter")
    return RunResult(("python",), end, 1.0, ranks, **more)


def verified(
    *ranks: RankResult, findings: Sequence[Finding] = (), max_drift: int = 0, **more: Any
) -> Verification:
    return verify("train.py", run(*ranks, **more), findings, max_drift)


def ran(line: int = 12, hits: int = 24, sampled: int = 20, **more: Any) -> LineFigures:
    return replace(LineFigures(FILE, line, hits, sampled, judged_hits=sampled), **more)


def holder(size: int = 16 * 4096, line: int = 12, nodes: int = 0, **more: Any) -> Holder:
    births = (Held(SITE, 16, size),) if size else ()
    base = Holder("list `losses` in `train()`", "losses", "list", "local", "train()", FILE, line, 16, size)
    return replace(base, **{"lines": (line, 10), "nodes": nodes, "births": births, **more})


def drift(
    per_step: float = 4096.0,
    status: str = "leak",
    place: str = "device",
    site: Site = SITE,
    kind: StepKind = "train",
    reason: str = "why",
) -> Drift:
    return Drift(site, kind, place, status, per_step, 1.0, 16, int(16 * per_step), 16, reason=reason)  # type: ignore[arg-type]


def text_of(verification: Verification, columns: int | None = None) -> str:
    out = io.StringIO()
    write(document(verification), out, False, columns)
    return out.getvalue()

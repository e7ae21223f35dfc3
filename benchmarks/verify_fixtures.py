"""Judges every `# expect:` line of the fixtures by running them: what the linter claims must be measurable.

    python benchmarks/verify_fixtures.py            # on the GPU where there is one
    python benchmarks/verify_fixtures.py --device cpu --jobs 2

Writes `benchmarks/results/fixtures-<gpu>-<date>.json` and prints a table. Exit status 1: a line was refuted, or
not reached, or memory grew that no line predicts.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from _measure import HERE, hardware, result_path, table, write
from gpulint.rules import all_rules

from gpulint.claims import Claim
from gpulint.findings import Finding, Severity
from gpulint.runtime.parent.runner import Run
from gpulint.runtime.parent.verdict import Verdict, Verification
from gpulint.verifying import program_findings, verification_of, with_claims

CLAIMS = {rule.code: rule.runtime_claim for rule in all_rules()}
FIXTURES = HERE.parent / "fixtures"
EXPECT = re.compile(r"#\s*expect:\s*(GPU\d{3}(?:\s*,\s*GPU\d{3})*)\s*$")
TO_THE_END = 1000  # steps; more than any fixture has, so that its evaluation at the end is reached


@dataclass(frozen=True)
class Outcome:
    """One fixture, verified."""

    script: Path
    verification: Verification

    def problems(self) -> list[str]:
        """What contradicts the fixture, one line each."""
        end = self.verification.run.end
        refused = any(v.code == "GPU604" and v.status == "confirmed" for v in self.verification.verdicts)
        ended = end.reason in ("finished", "stopped") or refused
        found = [] if ended else [f"{self.script.name}: {end.message}"]
        claims = {(one.filename, one.line, one.code): one.claim for one in expected(self.script)}
        found += [
            f"{where(v)} {v.code} {v.status}: {v.text}"
            for v in self.verification.verdicts
            if is_wrong(v, claims.get((v.file, v.line, v.code)) or CLAIMS[v.code])
        ]
        for drift in self.verification.unpredicted:
            if drift.device > 0:
                found.append(
                    f"{self.script.name}:{drift.line} unpredicted {drift.device:.0f} B a step: {drift.text}"
                )
        return found


def where(verdict: Verdict) -> str:
    return f"{Path(verdict.file).name}:{verdict.line}"


def is_wrong(verdict: Verdict, claim: Claim) -> bool:
    """Whether the run contradicts the expected line, or could not say although it should."""
    if verdict.status == "inconclusive":
        return not (claim.device_only or claim.kind == "code")
    if verdict.status == "not reached":
        # A line at the top of the module runs before anything can watch it; without a GPU some lines never run.
        return not (claim.kind == "setting" or claim.device_only)
    return verdict.status != "confirmed"


def scripts() -> list[Path]:
    """Every script of the fixtures that is run by itself."""
    return [*sorted(FIXTURES.glob("*.py")), *sorted(FIXTURES.glob("*/train.py"))]


@cache
def findings(script: Path) -> list[Finding]:
    """What the linter says of a script and its own modules, with whatever confidence."""
    return program_findings(Run(str(script)))


def expected(script: Path) -> list[Finding]:
    """The marked lines of a script and its own modules, as the linter reports them where it does."""
    linted = {(f.filename, f.line, f.code): f for f in findings(script)}
    found = []
    for file in Run(str(script)).files():
        for number, text in enumerate(Path(file).read_text(encoding="utf-8").splitlines(), 1):
            match = EXPECT.search(text)
            for code in match[1].replace(" ", "").split(",") if match else ():
                found.append(linted.get((file, number, code)) or _marked(file, number, code, text))
    return found


def _marked(file: str, line: int, code: str, text: str) -> Finding:
    """The finding that the mark stands for, if the linter is not there to say it."""
    column = len(text) - len(text.lstrip()) + 1
    end = len(text[: text.index("#")].rstrip()) + 1
    return Finding(code, "expected", Severity.WARNING, "marked in the fixture", file, line, column, line, end)


def verify_fixture(
    script: Path, device: Any = "auto", steps: int = TO_THE_END, arguments: tuple[str, ...] = ()
) -> Outcome:
    """Run a fixture to its end and judge its marked lines."""
    what = Run(
        str(script),
        arguments,
        steps=steps,
        device=device,
        timeout=240,
        capture=True,
        cwd=str(script.parent),
        environment={"OMP_NUM_THREADS": "1"},
    )
    return Outcome(script, verification_of(what, with_claims(expected(script))))


def rows(outcomes: Iterable[Outcome]) -> list[tuple[str, ...]]:
    """A row for each verdict."""
    return [
        (where(v), v.code, v.headline, v.text) for outcome in outcomes for v in outcome.verification.verdicts
    ]


def record(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """What is written down: verdicts and environment, without the samples."""
    environments = [r.environment for o in outcomes for r in o.verification.run.ranks[:1]]
    fixtures = {
        outcome.script.relative_to(FIXTURES).as_posix(): {
            "end": outcome.verification.run.end.message,
            "seconds": round(outcome.verification.run.seconds, 1),
            "steps": outcome.verification.sampled,
            "verdicts": [{**v.to_json(), "file": Path(v.file).name} for v in outcome.verification.verdicts],
            "unpredicted": [u.to_json() for u in outcome.verification.unpredicted],
            "problems": outcome.problems(),
        }
        for outcome in outcomes
    }
    head = {**environments[0].to_json(), "executable": None} if environments else {}
    return {"hardware": hardware(), "environment": head, "fixtures": fixtures}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these fixtures (without .py)")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--jobs", type=int, default=2, help="fixtures that run at the same time")
    parser.add_argument("--quick", action="store_true", help="40 steps at most for each fixture")
    parser.add_argument("--out", type=Path, help="where the JSON goes, instead of benchmarks/results/")
    given = parser.parse_args(arguments)
    chosen = [
        s for s in scripts() if not given.names or s.stem in given.names or s.parent.name in given.names
    ]
    steps = 40 if given.quick else TO_THE_END
    with ThreadPoolExecutor(given.jobs) as pool:
        outcomes = list(pool.map(lambda script: verify_fixture(script, given.device, steps), chosen))
    result = record(outcomes)
    path = given.out or result_path("fixtures", result)
    write(path, result)
    print(table(("line", "rule", "verdict", "measured"), rows(outcomes)))
    problems = [problem for outcome in outcomes for problem in outcome.problems()]
    print(
        f"\n{len(outcomes)} fixtures, {len(rows(outcomes))} lines, {len(problems)} problems; written to {path}"
    )
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

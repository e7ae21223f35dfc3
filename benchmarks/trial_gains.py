"""What fixes save when they are tried: `gpulint verify --fix --dry-run` on the fixtures and on public training scripts.

    python benchmarks/trial_gains.py OUT.json [--device cpu|cuda] [--jobs 4] [--only NAME]
    python benchmarks/trial_gains.py OUT.json --checkouts CHECKOUTS        # public scripts too: scripts.toml

Every script is run as it is, twice, then with the fixes of its findings; OUT.json has each fix's verdict and gains, and the
gains by rule. Scripts with fixes that claim time run alone, the others `--jobs` at a time: memory is measured by process.

Exit status: 1 where a fix that was called safe changed a result or broke a script, or a script could not be run.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _measure import about, table, write
from _scripts import SCRIPTS, SCRIPTS_WITH_FIXES, missing
from public_scripts import Bench
from verify_fixtures import FIXTURES, scripts

from gpulint.runtime.parent.runner import Run, run
from gpulint.trial.plan import Gain, Trial, TrialFix, amount, fixes_of
from gpulint.trial.trying import try_fixes
from gpulint.verifying import program_findings

REFUSED = ("misspelt_allocator",)  # torch refuses its settings on a GPU: there is no run to compare with
LIMIT = 240.0  # seconds for one run
RUNS = 12


@dataclass(frozen=True)
class Case:
    """One script to try: what is run, and what its files are called in the results."""

    name: str
    what: Run
    origin: Mapping[str, str]
    lacks: str = ""


def run_of(
    target: str, arguments: tuple[str, ...], device: Any, cwd: Path, environment: Mapping[str, str]
) -> Run:
    return Run(
        target, arguments, device=device, timeout=LIMIT, reach=60.0, cwd=str(cwd), environment=environment
    )


def fixture_cases(device: str) -> list[Case]:
    """Every script of the fixtures that is run by itself."""
    found = []
    for path in scripts():
        environment = {"OMP_NUM_THREADS": "1"} if device == "cpu" else {}
        name = path.relative_to(FIXTURES).with_suffix("").as_posix()
        what = run_of(str(path), (), device, path.parent, environment)
        found.append(Case(name, what, {"origin": "fixtures"}))
    return found


def public_cases(checkouts: Path, device: str, folder: Path) -> list[Case]:
    """The public scripts, each in a fresh copy with its data."""
    bench = Bench(checkouts, device, folder)
    found = []
    for script in (*SCRIPTS, *SCRIPTS_WITH_FIXES):
        origin = {"origin": script.repository, "commit": script.commit}
        lacks = missing(script, checkouts)
        if lacks:
            found.append(Case(script.name, Run(script.script), origin, lacks))
            continue
        home = folder / re.sub(r"\W+", "-", script.name)
        cwd = script.prepare(checkouts, home / "code")
        environment = bench.environment(script, home)
        arguments = tuple(script.command(device))
        found.append(Case(script.name, run_of(script.script, arguments, device, cwd, environment), origin))
    return found


# -- gains -----------------------------------------------------------------------------------------------------


def tried(case: Case, fixes: Sequence[TrialFix]) -> dict[str, Any]:
    """The record of one script."""
    begin = time.monotonic()
    trial = try_fixes(case.what, fixes, lambda what, label: run(what), RUNS)
    return {**told(trial), "seconds": round(time.monotonic() - begin, 1)}


def told(trial: Trial) -> dict[str, Any]:
    """What of a trial is written down: no text of the script's source."""
    rank = trial.before.ranks[0] if trial.before is not None and trial.before.ranks else None
    fixes = [
        {
            "rules": sorted({finding.code for finding in one.fix.findings}),
            "file": Path(one.fix.file).name,
            "line": one.fix.first.line,
            "applicability": one.fix.fix.applicability,
            "confidence": one.fix.first.confidence.value,
            "status": one.status,
            "text": one.text,
            "alone": one.alone,
            "defect": one.is_our_defect,
            "gains": [gain_json(gain) for gain in one.gains if gain.counts],
        }
        for one in trial.judged
    ]
    attempts = [
        {"label": a.label, "seconds": round(a.seconds, 2), "outcome": a.outcome} for a in trial.attempts
    ]
    return {
        "failure": trial.failure,
        "noise": trial.noise,
        "fixes": fixes,
        "gains": [gain_json(gain) for gain in trial.gains],
        "attempts": attempts,
        "environment": {**rank.environment.to_json(), "executable": None} if rank is not None else {},
    }


def gain_json(gain: Gain) -> dict[str, Any]:
    return {**gain.to_json(), "saved": gain.saved, "share": round(gain.share, 4)}


def by_rule(records: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each rule how its fixes came out, and the best of what they saved alone, by figure."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        for fix in record.get("fixes", ()):
            for rule in fix["rules"]:
                entry = found.setdefault(rule, {"statuses": {}, "saved": {}})
                entry["statuses"][fix["status"]] = entry["statuses"].get(fix["status"], 0) + 1
                for gain in fix["gains"] if fix["status"] == "pays" and fix["alone"] else ():
                    best = entry["saved"].get(gain["name"])
                    if gain["saved"] > 0 and (best is None or gain["share"] > best["share"]):
                        entry["saved"][gain["name"]] = {"script": record["name"], **gain}
    return dict(sorted(found.items()))


def problems(record: Mapping[str, Any]) -> list[str]:
    """What must not be."""
    failed = record.get("failure") and record["name"] not in REFUSED
    found = [f"could not be run: {record['failure']}"] if failed else []
    for fix in record.get("fixes", ()):
        if fix["defect"]:
            place, rules = f"{fix['file']}:{fix['line']}", "/".join(fix["rules"])
            found.append(f"{place} {rules} {fix['status']}: {fix['text']}")
    return found


def rows(records: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    shown: list[tuple[str, ...]] = []
    for record in records:
        for fix in record.get("fixes", ()):
            saved = [Gain.from_json(gain) for gain in fix["gains"] if gain["saved"] > 0]
            told = "; ".join(
                f"{gain.name} {amount(gain.before, gain.unit)} → {amount(gain.after, gain.unit)}"
                for gain in saved[:2]
            )
            place = f"{fix['file']}:{fix['line']}"
            shown.append(
                (record["name"], place, "/".join(fix["rules"]), fix["status"], (told or fix["text"])[:110])
            )
        if record.get("left_out") or record.get("failure"):
            shown.append((record["name"], "", "", "", record.get("left_out") or record["failure"]))
    return shown


# -- the command -----------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="where the JSON goes")
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--jobs", type=int, default=2, help="scripts that run at the same time")
    parser.add_argument("--only", action="append", default=[], help="only scripts whose name has this in it")
    parser.add_argument(
        "--checkouts", type=Path, help="folder with the checkouts that public_scripts.py lists"
    )
    parser.add_argument("--no-fixtures", action="store_true", help="only the public scripts")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="trials-") as folder:
        return measured(given, Path(folder))


def measured(given: argparse.Namespace, folder: Path) -> int:
    import torch

    device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
    cases = [] if given.no_fixtures else fixture_cases(device)
    if given.checkouts is not None:
        cases += public_cases(given.checkouts.resolve(), device, folder)
    cases = [case for case in cases if not given.only or any(name in case.name for name in given.only)]
    head = {**about(device), "jobs": given.jobs}
    records: list[dict[str, Any]] = []
    lock = threading.Lock()

    def one(case: Case, fixes: Sequence[TrialFix]) -> None:
        known = {"name": case.name, **case.origin, "arguments": " ".join(case.what.arguments)}
        try:
            found = tried(case, fixes)
        except (RuntimeError, OSError) as error:
            found = {"failure": str(error)}
        with lock:  # written at once: a machine may be taken away
            records.append({**known, **found})
            known_so_far = sorted(records, key=lambda r: r["name"])
            write(given.out, {**head, "rules": by_rule(known_so_far), "scripts": known_so_far})
            print("; ".join((case.name, *problems(records[-1]))), file=sys.stderr, flush=True)

    waiting = []
    for case in cases:
        fixes = [] if case.lacks else fixes_of(program_findings(case.what))  # of every confidence
        if fixes:
            waiting.append((case, fixes))
        else:
            why = case.lacks or "no finding has a fix"
            records.append({"name": case.name, **case.origin, "left_out": why})
    alone = [pair for pair in waiting if any(fix.is_about_time for fix in pair[1])]
    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(lambda pair: one(*pair), [pair for pair in waiting if pair not in alone]))
    for pair in alone:
        one(*pair)
    records.sort(key=lambda record: record["name"])
    write(given.out, {**head, "rules": by_rule(records), "scripts": records})
    return shown(records, given)


def shown(records: Sequence[Mapping[str, Any]], given: argparse.Namespace) -> int:
    print(table(("script", "place", "rule", "verdict", "measured"), rows(records)))
    found = [f"{record['name']}: {problem}" for record in records for problem in problems(record)]
    print(f"\n{len(records)} scripts, {len(found)} problems; written to {given.out}")
    for problem in found:
        print(f"problem: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())

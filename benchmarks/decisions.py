"""How many of the analysis's decisions the quick tests would miss.

Every condition in the analysis, and in the detectors of the rules, is there because some program needs it, and a test
should say which. This takes decisions at random, spoils each of them alone and runs the tests of `make quick` until
one fails:

- a condition of an `if`, a `while`, an `a if b else c` or a comprehension becomes `False`;
- the last term of an `and` or an `or` is dropped;
- `return True` becomes `return False`, and the other way round.

A decision that no test notices needs a case under `tests/cases`, or it can go. Some of them only save time: these may
stay, and make the percentage a little worse than it is.

    python benchmarks/decisions.py                        150 decisions, two at a time
    python benchmarks/decisions.py 20 --seed 7            others, and fewer
    python benchmarks/decisions.py --limit-seconds 600    stop after ten minutes; the same command goes on from there
    python benchmarks/decisions.py --only loops.py        of files with this in their path

It works on copies in a temporary folder and changes nothing here. After each decision the results are written to
`--out`; a run with the same seed on the same analysis reads them and goes on, also with a larger number. A copy needs
10 to 50 seconds of one core for a decision, the most where nothing notices.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import json
import os
import queue
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("gpulint/analysis", "rules/detect")
SLOWER = 10  # times as long as without a change: a run of the tests that takes longer hangs, and is noticed
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Decision:
    """A place in a file, by bytes, what stands there and what shall stand there instead."""

    file: str
    line: int
    kind: str
    before: str
    after: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.kind}: {_short(self.before)} → {_short(self.after)}"

    def spoil(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The first test that failed, `no end` where the tests hang, or nothing."""

    decision: Decision
    by: str | None
    seconds: float


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:59] + "…"


# -- decisions -------------------------------------------------------------------------------------------------


def decisions(root: Path, only: str) -> list[Decision]:
    """All decisions of the analysis, in the order of their files and lines."""
    found: list[Decision] = []
    for path in _sources(root):
        name = path.relative_to(root).as_posix()
        if only in name:
            found += decisions_of(name, path.read_bytes())
    return found


def _sources(root: Path) -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]


def decisions_of(name: str, source: bytes) -> list[Decision]:
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    found: list[Decision] = []
    for node, kind, after in _spoilt(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = source[start:end].decode()
        found.append(Decision(name, node.lineno, kind, before, after, start, end))
    return sorted(found, key=lambda one: (one.start, one.end, one.kind))


def _spoilt(tree: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    """(expression, kind, what shall stand in its place) for each decision."""
    for node in _walk(tree):
        if isinstance(node, (ast.If, ast.While, ast.IfExp)) and not _is_about_types(node.test):
            yield node.test, "condition false", "False"
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield test, "condition false", "False"
        elif isinstance(node, ast.BoolOp):
            less = node.values[0] if len(node.values) == 2 else ast.BoolOp(node.op, node.values[:-1])
            yield node, "last term dropped", f"({ast.unparse(less)})"
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, bool):
                yield node.value, "answer flipped", str(not node.value.value)


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those within f-strings, whose places Python did not know before 3.12."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.JoinedStr):
            yield from _walk(child)


def _is_about_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


# -- copies ----------------------------------------------------------------------------------------------------


def copy_tree(target: Path) -> None:
    """The working tree, without what git ignores, such that `gpulint` is imported from there."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    (target / "gpulint/rules").symlink_to(target / "rules")
    ask = "import gpulint, gpulint.rules; print(gpulint.__file__); print(gpulint.rules.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", ask], cwd=target, env=_environment(target), capture_output=True, text=True
    )
    if not all(line.startswith(str(target)) for line in told.stdout.split()) or not told.stdout:
        raise SystemExit(f"the copy is not what Python imports: {told.stdout}{told.stderr}")


def _environment(copy: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(copy)}


def quick_tests() -> list[list[str]]:
    """The files of `make quick`, from the Makefile: the labelled programs first, and by themselves, as they notice
    most and nothing else need be imported for them."""
    found = re.search(r"^QUICK := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("the Makefile has no line QUICK := …")
    patterns = shlex.split(found[1])
    files = [str(path.relative_to(ROOT)) for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return [files[:1], files[1:]]


def first_failure(copy: Path, limit: float | None = None) -> str | None:
    """The test that fails first in this copy, `no end` after so many seconds; None where all pass."""
    options = ["-x", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow"]
    for files in quick_tests():
        command = [sys.executable, "-m", "pytest", *options, *files]
        try:
            done = subprocess.run(
                command, cwd=copy, env=_environment(copy), capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return "no end"
        if done.returncode:
            found = _FAILED.search(done.stdout)
            return found[1] if found else f"pytest ends with {done.returncode}"
    return None


def examine(decision: Decision, copy: Path, limit: float | None = None) -> Outcome:
    """Spoil the decision in this copy, run the tests, and mend it again."""
    began = time.monotonic()
    path = copy / decision.file
    source = path.read_bytes()
    # Bytecode is found stale by the second and the size, which two changes in a row may share.
    compiled = Path(importlib.util.cache_from_source(str(path)))
    try:
        path.write_bytes(decision.spoil(source))
        compiled.unlink(missing_ok=True)
        by = first_failure(copy, limit)
    finally:
        path.write_bytes(source)
        compiled.unlink(missing_ok=True)
    return Outcome(decision, by, round(time.monotonic() - began, 1))


# -- results ---------------------------------------------------------------------------------------------------


class Results:
    """What has been found out, in a file that the next run goes on from."""

    def __init__(self, path: Path, seed: int, only: str) -> None:
        self.path = path
        self.head = {"seed": seed, "only": only, "analysis": _digest(ROOT)}
        self.outcomes: dict[Decision, Outcome] = {}
        self._read()

    def _read(self) -> None:
        if not self.path.exists():
            return
        data = json.loads(self.path.read_text(encoding="utf-8"))
        if any(data.get(key) != value for key, value in self.head.items()):
            print(f"{self.path} is of another seed or another state of the analysis: begun anew")
            return
        for item in data["decisions"]:
            decision = Decision(**item["decision"])
            self.outcomes[decision] = Outcome(decision, item["by"], item["seconds"])

    def add(self, outcome: Outcome) -> None:
        self.outcomes[outcome.decision] = outcome
        self.write()

    def write(self) -> None:
        noticed = sum(outcome.by is not None for outcome in self.outcomes.values())
        data = {
            **self.head,
            "examined": len(self.outcomes),
            "noticed": noticed,
            "percent": percent(noticed, len(self.outcomes)),
            "decisions": [
                {**asdict(outcome), "noticed": outcome.by is not None} for outcome in self.outcomes.values()
            ],
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(self.path)


def percent(noticed: int, examined: int) -> float:
    return round(100 * noticed / examined, 1) if examined else 0.0


def _digest(root: Path) -> str:
    summed = hashlib.sha256()
    for path in _sources(root):
        summed.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return summed.hexdigest()[:16]


def summary(chosen: list[Decision], results: Results) -> str:
    known = [results.outcomes[decision] for decision in chosen if decision in results.outcomes]
    noticed = sum(outcome.by is not None for outcome in known)
    lines = [f"seed {results.head['seed']}: {noticed} of {len(known)} decisions noticed"]
    lines[0] += f" ({percent(noticed, len(known))} %), {len(chosen) - len(known)} not examined"
    lines += [f"  not noticed: {outcome.decision}" for outcome in known if outcome.by is None]
    return "\n".join(lines)


# -- running ---------------------------------------------------------------------------------------------------


def run(due: list[Decision], results: Results, jobs: int, end: float) -> None:
    """Examine these decisions, each in a copy that is free, until they or the time are used up."""
    with TemporaryDirectory(prefix="decisions-") as folder:
        top = Path(folder).resolve()
        free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            copy_tree(top / str(number))
            free.put(top / str(number))
        began = time.monotonic()
        failing = first_failure(top / "0")
        limit = SLOWER * (time.monotonic() - began)
        if failing is not None:
            raise SystemExit(f"the tests fail before anything is changed: {failing}")

        def one(decision: Decision) -> Outcome | None:
            if time.monotonic() > end:
                return None
            copy = free.get()
            try:
                return examine(decision, copy, limit)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(jobs) as pool:
            for task in as_completed([pool.submit(one, decision) for decision in due]):
                outcome = task.result()
                if outcome is None:
                    continue
                results.add(outcome)
                told = f"noticed by {outcome.by}" if outcome.by else "NOT NOTICED"
                print(f"{outcome.decision}\n    {told} ({outcome.seconds:.0f} s)", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("number", nargs="?", type=int, default=150, help="of decisions (150)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="at a time (2)")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="begin no more after these")
    parser.add_argument("--only", default="", metavar="TEXT", help="files with this in their path")
    parser.add_argument("--out", type=Path, default=ROOT / "build/decisions.json", metavar="FILE")
    given = parser.parse_args()

    every = decisions(ROOT, given.only)
    random.Random(given.seed).shuffle(every)
    chosen = every[: given.number]  # a larger number examines these and more
    print(f"{len(chosen)} of {len(every)} decisions, seed {given.seed}")
    results = Results(given.out, given.seed, given.only)
    due = [decision for decision in chosen if decision not in results.outcomes]
    if due:
        run(due, results, given.jobs, time.monotonic() + given.limit_seconds)
    results.write()
    print(summary(chosen, results))
    return 0


if __name__ == "__main__":
    sys.exit(main())

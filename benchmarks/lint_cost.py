"""What linting costs on the processor: this checkout against an earlier one, and rule by rule.

    git worktree add /tmp/before COMMIT
    python benchmarks/lint_cost.py --before /tmp/before TREE... --output cost.json

Each tree is linted as a whole, caches off, in alternating runs of both checkouts: CPU seconds (user and system) of all
processes. Then every file that a rule may fire in is analysed once more in one process, with a clock around each rule.
There each file is analysed by itself, with what it imports, so that the analysis takes longer than in a run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _measure import hardware, table

ROOT = Path(__file__).resolve().parent.parent
LINT = "import sys; from gpulint.cli import main; sys.argv[0] = 'gpulint'; sys.exit(main())"
CHECK = ("check", "--isolated", "--no-cache", "--statistics", ".")


def installed(checkout: Path, folder: Path) -> Path:
    """A folder in which the checkout is a package, as pip would install it."""
    package = folder / "gpulint"
    package.mkdir(parents=True)
    for part in (*(checkout / "gpulint").iterdir(), checkout / "rules"):
        (package / part.name).symlink_to(part)
    return folder


def lint(package: Path, tree: Path) -> float:
    """CPU seconds of one run. Raises RuntimeError where it fails."""
    before = os.times()
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, "-c", LINT, *CHECK], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise RuntimeError(f"gpulint failed on {tree.name}: {done.stderr[-500:]}")
    now = os.times()
    used = now.children_user + now.children_system - before.children_user - before.children_system
    return round(used, 3)


def runs(packages: dict[str, Path], tree: Path, rounds: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in packages}
    for number in range(rounds):
        for name in sorted(packages, reverse=number % 2 == 1):
            taken[name].append(lint(packages[name], tree))
    return taken


def clocked(
    check: Callable[..., Iterator[Any]], code: str, taken: Counter[str]
) -> Callable[..., Iterator[Any]]:
    """A rule's `check` that adds up what it takes."""

    def measured(*arguments: Any) -> Iterator[Any]:
        begin = time.process_time()
        for report in check(*arguments):
            taken[code] += time.process_time() - begin
            yield report
            begin = time.process_time()
        taken[code] += time.process_time() - begin

    return measured


def by_rule(trees: list[Path]) -> dict[str, Any]:
    """CPU seconds of each rule of this checkout, and of everything."""
    from gpulint.rules import all_rules

    from gpulint.lint.linter import lint_text, project_of
    from gpulint.lint.trees import SourceError
    from gpulint.rule import RuleSet

    taken: Counter[str] = Counter()
    rules = tuple(all_rules())
    for rule in rules:
        rule.check = clocked(rule.check, rule.code, taken)  # type: ignore[method-assign]
    begin, files = time.process_time(), 0
    for path in sorted(path for tree in trees for path in tree.rglob("*.py")):
        raw = path.read_bytes()
        if not any(rule.can_fire(raw) for rule in rules):
            continue
        try:
            lint_text(raw.decode(), str(path), RuleSet(rules), project_of(str(path)))
            files += 1
        except (SourceError, UnicodeDecodeError):
            continue
    whole = round(time.process_time() - begin, 2)
    return {"files": files, "whole": whole, "rules": {code: round(taken[code], 3) for code in sorted(taken)}}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", nargs="+", type=Path, help="folders of Python sources")
    parser.add_argument("--before", type=Path, required=True, help="an earlier checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packages = {
            "before": installed(options.before.resolve(), Path(folder, "before")),
            "now": installed(ROOT, Path(folder, "now")),
        }
        trees = {tree.resolve().name: runs(packages, tree, options.rounds) for tree in options.trees}
    found = {"machine": hardware(), "cpu_s": trees, "one_process": by_rule(options.trees)}
    options.output.write_text(json.dumps(found, indent=1) + "\n")
    rows = [
        [name, *(f"{min(taken[which]):.2f}" for which in ("before", "now"))] for name, taken in trees.items()
    ]
    print(table(["tree", "before", "now"], rows))


if __name__ == "__main__":
    main()

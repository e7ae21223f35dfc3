"""Count gpulint's findings over real code, show them to be read, and score them against labels.

    python benchmarks/accuracy.py TREE...                  findings per 1,000 lines by rule, and a sample to read
    python benchmarks/accuracy.py TREE... --rule GPU1 --all    every finding of the rules GPU1xx
    python benchmarks/accuracy.py TREE... --unlabelled     only findings that nobody has judged yet
    python benchmarks/accuracy.py TREE... --write new.jsonl    what is shown, as labels to be filled in
    python benchmarks/accuracy.py TREE... --quiet --json out.json --markdown out.md    the tables as files

A tree is a folder named PACKAGE-VERSION, as sources unpack, or is given as PACKAGE==VERSION=FOLDER. Labels stand in
`labels.jsonl`, one JSON object a line:

    {"package": "timm", "version": "1.0.9", "file": "train.py", "line": 12, "code": "GPU101", "hash": "…",
     "label": true, "why": "…"}

`file` is relative to the tree. `hash` is of the line's text without its indentation, so a label still fits when
the line has moved, in the same version or another. Precision counts labelled findings only, and the table says how
many are not, with the 95 % Wilson interval that so few labels allow. Labels without a finding are listed: true ones
as missed, false ones as silent.

Most labels were given to findings of earlier states of the rules, and false alarms among them were then mended: the
precision on them says how the rules do on code that they were mended with, and only `--unlabelled` shows new code.
`--findings FOLDER` keeps gpulint's output of each tree there and takes it from there the next time.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import math
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from _measure import find_script, table

LABELS = Path(__file__).parent / "labels.jsonl"
# The code of a file that could not be checked: no finding, and no part of any precision.
UNCHECKED = "GPU000"


@dataclass(frozen=True)
class Tree:
    """One package's sources: where they are, whose they are, how much Python they hold."""

    folder: Path
    package: str
    version: str
    files: int
    lines: int

    @property
    def name(self) -> str:
        return f"{self.package}-{self.version}" if self.version else self.package


@dataclass(frozen=True)
class Label:
    """A person's judgement of one finding. `label` is None where it has not been given yet."""

    package: str
    version: str
    file: str
    line: int
    code: str
    hash: str
    label: bool | None = None
    why: str = ""

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What identifies the line across versions and moves."""
        return (self.package, self.file, self.code, self.hash)


@dataclass(frozen=True)
class Hit:
    """A finding of this run, with the label it was given, if any."""

    tree: Tree
    path: Path
    severity: str
    message: str
    key: Label
    label: Label | None = None

    @property
    def verdict(self) -> bool | None:
        return self.label.label if self.label else None


def read_tree(argument: str) -> Tree:
    """A tree named on the command line. Exits with a sentence where it is no folder."""
    named = re.fullmatch(r"(?P<package>[\w.-]+)==(?P<version>[^=]*)=(?P<folder>.+)", argument)
    folder = Path(named["folder"] if named else argument).resolve()
    if not folder.is_dir():
        raise SystemExit(f"accuracy.py: {folder} is not a folder; name the unpacked sources of a package")
    if not named:
        named = re.fullmatch(r"(?P<package>.+?)-(?P<version>\d[^-]*)", folder.name)
    package, version = (named["package"], named["version"]) if named else (folder.name, "")
    files = [path for path in folder.rglob("*.py") if path.is_file() and not path.is_symlink()]
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    return Tree(folder, package, version, len(files), lines)


def run_gpulint(tree: Tree, script: Path, arguments: Sequence[str]) -> list[dict[str, Any]]:
    """gpulint's JSON findings for one tree. Exits with gpulint's own words where it gave no list."""
    command = [
        str(script),
        "--isolated",
        "--no-cache",
        "--exit-zero",
        "--output-format",
        "json",
        *arguments,
        ".",
    ]
    done = subprocess.run(command, cwd=tree.folder, capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(
            f"accuracy.py: gpulint gave no JSON for {tree.name}: {done.stderr.strip()[-500:]}"
        ) from None
    if "Traceback (most recent call last)" in done.stderr:
        raise SystemExit(f"accuracy.py: gpulint crashed on {tree.name}: {done.stderr.strip()[-500:]}")
    assert isinstance(found, list)
    return found


def findings_of(
    tree: Tree, script: Path, arguments: Sequence[str], kept: Path | None
) -> list[dict[str, Any]]:
    """gpulint's findings for a tree: from the folder where an earlier run left them, or by running it now."""
    place = kept / f"{tree.name}.json" if kept is not None else None
    if place is not None and place.exists():
        wanted = arguments[1].split(",") if arguments else [""]
        found: list[dict[str, Any]] = json.loads(place.read_text(encoding="utf-8"))
        return [finding for finding in found if finding["code"].startswith(tuple(wanted))]
    found = run_gpulint(tree, script, arguments)
    if place is not None and not arguments:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(found), encoding="utf-8")
    return found


def to_hit(tree: Tree, finding: Mapping[str, Any]) -> Hit:
    path = (tree.folder / finding["filename"]).resolve()
    row = int(finding["location"]["row"])
    file = path.relative_to(tree.folder).as_posix()
    key = Label(tree.package, tree.version, file, row, finding["code"], hash_of(line_of(path, row)))
    return Hit(tree, path, finding["severity"], finding["message"], key)


def lines_of(path: Path) -> list[str]:
    return path.read_bytes().decode(errors="replace").splitlines()


def line_of(path: Path, row: int) -> str:
    lines = lines_of(path)
    return lines[row - 1] if 0 < row <= len(lines) else ""


def hash_of(line: str) -> str:
    """A short hash of a line's text; indentation and runs of blanks do not count."""
    return hashlib.sha256(" ".join(line.split()).encode()).hexdigest()[:12]


def read_labels(path: Path) -> list[Label]:
    """All labels of a JSON-lines file. Exits naming the line that is not a label."""
    if not path.exists():
        return []
    labels = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not text.strip():
            continue
        try:
            label = Label(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise SystemExit(f"accuracy.py: {path.name}:{number} is not a label: {error}") from None
        if label.label is not None and not isinstance(label.label, bool):
            raise SystemExit(f"accuracy.py: {path.name}:{number}: `label` must be true, false or null")
        labels.append(label)
    return labels


def match(hits: Sequence[Hit], labels: Iterable[Label]) -> tuple[list[Hit], list[Label]]:
    """Give every hit its label, each label to one hit at most: same version first, then the nearest line.

    Returns the hits, and the labels that no hit took.
    """
    waiting: dict[tuple[str, str, str, str], list[Label]] = defaultdict(list)
    for label in labels:
        if label.label is not None:
            waiting[label.place].append(label)
    alike: dict[tuple[str, str, str, str], list[int]] = defaultdict(list)
    for index, hit in enumerate(hits):
        alike[hit.key.place].append(index)
    result = list(hits)
    for place, indexes in alike.items():
        pairs = sorted(
            (label.version != hits[index].key.version, abs(label.line - hits[index].key.line), index, number)
            for index in indexes
            for number, label in enumerate(waiting[place])
        )
        taken: dict[int, int] = {}
        for _, _, index, number in pairs:
            if index not in taken and number not in taken.values():
                taken[index] = number
        for index, number in taken.items():
            result[index] = replace(hits[index], label=waiting[place][number])
        used = set(taken.values())
        waiting[place] = [label for number, label in enumerate(waiting[place]) if number not in used]
    left = [label for group in waiting.values() for label in group]
    return result, sorted(left, key=lambda label: (label.package, label.file, label.line))


def wilson(true: int, judged: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share: what few labels can be trusted for. (0, 1) where there are none."""
    if not judged:
        return 0.0, 1.0
    z = 1.96
    share = true / judged
    centre = share + z * z / (2 * judged)
    margin = z * math.sqrt(share * (1 - share) / judged + z * z / (4 * judged * judged))
    scale = 1 + z * z / judged
    return max(0.0, centre - margin) / scale, min(scale, centre + margin) / scale


@dataclass(frozen=True)
class Score:
    """What the labels say of one group of findings. `packages` are those with a finding of the group."""

    name: str
    findings: int
    true: int
    false: int
    unlabelled: int
    packages: int
    precision: float | None
    low: float
    high: float


def score(name: str, group: Sequence[Hit]) -> Score:
    true = sum(hit.verdict is True for hit in group)
    judged = sum(hit.verdict is not None for hit in group)
    low, high = wilson(true, judged)
    packages = len({hit.key.package for hit in group})
    share = true / judged if judged else None
    return Score(
        name,
        len(group),
        true,
        judged - true,
        len(group) - judged,
        packages,
        share,
        round(low, 4),
        round(high, 4),
    )


def scores(hits: Sequence[Hit]) -> list[Score]:
    """By rule, by severity and together; groups without a finding left out."""
    groups: list[tuple[str, list[Hit]]] = [
        (code, [hit for hit in hits if hit.key.code == code])
        for code in sorted({hit.key.code for hit in hits})
    ]
    for severity in ("error", "warning", "info"):
        groups.append((f"all of severity {severity}", [hit for hit in hits if hit.severity == severity]))
    groups.append(("together", list(hits)))
    return [score(name, group) for name, group in groups if group]


def counts(hits: Sequence[Hit], trees: Sequence[Tree]) -> str:
    """Findings per 1,000 lines by tree and rule."""
    rules = sorted({hit.key.code for hit in hits})
    rows = []
    for tree in trees:
        found = Counter(hit.key.code for hit in hits if hit.tree == tree)
        rows.append(_count_row(tree.name, tree.files, tree.lines, found, rules))
    files, lines = sum(tree.files for tree in trees), sum(tree.lines for tree in trees)
    rows.append(_count_row("together", files, lines, Counter(hit.key.code for hit in hits), rules))
    return table(["tree", "files", "lines", "findings", "per 1,000 lines", *rules], rows)


def _count_row(name: str, files: int, lines: int, found: Counter[str], rules: Sequence[str]) -> list[str]:
    total = found.total()
    rate = f"{total / lines * 1000:.3f}" if lines else "-"
    return [name, f"{files:,}", f"{lines:,}", str(total), rate, *(str(found[code]) for code in rules)]


def precision(found: Sequence[Score]) -> str:
    """Precision by rule, by severity and together, from the labelled findings, as a table."""
    rows = []
    for group in found:
        share = "-" if group.precision is None else f"{group.precision:.1%}"
        interval = "-" if group.precision is None else f"{group.low:.0%} to {group.high:.0%}"
        counted = (group.findings, group.packages, group.true, group.false, group.unlabelled)
        rows.append([group.name, *(str(number) for number in counted), share, interval])
    heads = ["rule", "findings", "packages", "true", "false", "unlabelled", "precision", "95 % interval"]
    return table(heads, rows)


def summary(hits: Sequence[Hit], trees: Sequence[Tree], found: Sequence[Score]) -> dict[str, Any]:
    """The tables as JSON: what was checked, findings per 1,000 lines and precision by rule."""
    lines = sum(tree.lines for tree in trees)
    codes = Counter(hit.key.code for hit in hits)
    return {
        "date": datetime.date.today().isoformat(),
        "packages": len(trees),
        "files": sum(tree.files for tree in trees),
        "lines": lines,
        "per_1000_lines": {code: round(codes[code] / lines * 1000, 5) for code in sorted(codes)}
        if lines
        else {},
        "precision": [asdict(group) for group in found],
        "trees": [
            {"package": tree.package, "version": tree.version, "lines": tree.lines, "findings": n}
            for tree in trees
            for n in [sum(hit.tree == tree for hit in hits)]
        ],
    }


def markdown(found: Sequence[Score], trees: Sequence[Tree]) -> str:
    """The table of precision as Markdown, with a sentence on what it is of."""
    lines = sum(tree.lines for tree in trees)
    head = (
        f"{len(trees)} packages from PyPI, {lines:,} lines, {datetime.date.today().isoformat()}; "
        "labels by reading each finding in its context.\n"
    )
    return f"{head}\n{precision(found)}\n"


def choose(hits: Sequence[Hit], options: argparse.Namespace) -> list[Hit]:
    """The findings to show: all, or for each rule a random sample that the seed fixes."""
    wanted = [hit for hit in hits if not options.unlabelled or hit.verdict is None]
    if options.false:
        wanted = [hit for hit in wanted if hit.verdict is False]
    if options.severity:
        wanted = [hit for hit in wanted if hit.severity == options.severity]
    if options.all:
        return wanted
    chosen = []
    for code in sorted({hit.key.code for hit in wanted}):
        group = [hit for hit in wanted if hit.key.code == code]
        chosen += random.Random(f"{options.seed} {code}").sample(group, min(options.sample, len(group)))
    return chosen


def show(hit: Hit, context: int) -> str:
    """A finding with the lines around it, its own marked, and its label."""
    lines = lines_of(hit.path)
    first, last = max(1, hit.key.line - context), min(len(lines), hit.key.line + context)
    body = [
        f"{'>' if row == hit.key.line else ' '}{row:6} {lines[row - 1]}" for row in range(first, last + 1)
    ]
    head = f"{hit.tree.name}: {hit.key.file}:{hit.key.line}: {hit.key.code} {hit.severity}: {hit.message}"
    verdict = f"  [{str(hit.verdict).lower()}: {hit.label.why}]" if hit.label else "  [unlabelled]"
    return "\n".join([head, verdict, *body, ""])


def write_labels(hits: Sequence[Hit], target: Path) -> None:
    """The shown findings as labels; those without a judgement have `label: null` and the message as `why`."""
    records = [hit.label or replace(hit.key, why=hit.message) for hit in hits]
    target.write_text("".join(json.dumps(asdict(record)) + "\n" for record in records), encoding="utf-8")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", nargs="+", help="folders named PACKAGE-VERSION, or PACKAGE==VERSION=FOLDER")
    parser.add_argument(
        "--rule", action="append", default=[], help="only this rule, or rules with this prefix"
    )
    parser.add_argument("--severity", choices=["error", "warning", "info"], help="show only these")
    parser.add_argument("--all", action="store_true", help="show every finding instead of a sample")
    parser.add_argument("--unlabelled", action="store_true", help="show only findings without a label")
    parser.add_argument("--false", action="store_true", help="show only findings labelled false")
    parser.add_argument("--sample", type=int, default=5, help="findings to show for each rule")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--context", type=int, default=8, help="lines before and after a finding")
    parser.add_argument("--quiet", action="store_true", help="print the tables only")
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write what is shown as labels to fill in")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables as JSON")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table of precision as Markdown"
    )
    parser.add_argument(
        "--findings", type=Path, metavar="FOLDER", help="keep and reuse gpulint's output here"
    )
    parser.add_argument("--gpulint", type=Path, help="the gpulint script to run")
    parser.add_argument(
        "--fail-under", type=float, default=0.0, help="exit 1 if precision is below this share"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    script = options.gpulint or find_script("gpulint", [Path(sys.executable).parent.parent])
    if script is None:
        raise SystemExit("accuracy.py: no gpulint script beside this Python; install the project")
    trees = [read_tree(argument) for argument in options.trees]
    select = ["--select", ",".join(options.rule)] if options.rule else []
    hits = [
        to_hit(tree, finding)
        for tree in trees
        for finding in findings_of(tree, script, select, options.findings)
    ]
    unchecked = [hit for hit in hits if hit.key.code == UNCHECKED]
    hits = [hit for hit in hits if hit.key.code != UNCHECKED]
    hits, left = match(hits, read_labels(options.labels))
    shown = choose(hits, options)
    if not options.quiet:
        print(*(show(hit, options.context) for hit in shown), sep="\n")
    found = scores(hits)
    print(counts(hits, trees), precision(found), sep="\n\n")
    if options.json:
        options.json.write_text(json.dumps(summary(hits, trees, found), indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(markdown(found, trees), encoding="utf-8")
    for hit in unchecked:
        print(f"not checked: {hit.tree.name}: {hit.key.file}:{hit.key.line}: {hit.message}")
    report_left(left, trees, options.rule)
    if options.write:
        write_labels(shown, options.write)
    judged = [hit.verdict for hit in hits if hit.verdict is not None]
    return 1 if options.fail_under and sum(judged) < options.fail_under * len(judged) else 0


def report_left(left: Sequence[Label], trees: Sequence[Tree], rules: Sequence[str]) -> None:
    """Print the labels of the checked trees that no finding carries."""
    checked = {(tree.package, tree.version) for tree in trees}
    for label in left:
        if (label.package, label.version) not in checked:
            continue
        if rules and not label.code.startswith(tuple(rules)):
            continue
        word = "missed: labelled true, not found" if label.label else "silent: labelled false, not found"
        print(
            f"{word}: {label.package}-{label.version}: {label.file}:{label.line} {label.code} ({label.why})"
        )


if __name__ == "__main__":
    raise SystemExit(main())

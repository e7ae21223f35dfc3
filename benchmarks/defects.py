"""How many known defects of public programs are told, and how many places that only look like one.

    python benchmarks/defects.py CLONES                        the cases of results/unseen-defects.json, told now
    python benchmarks/defects.py CLONES --cases FILE --out NEW.json

CLONES holds a bare clone of each repository, as `owner+name`: `git clone --mirror https://github.com/owner/name owner+name`.
A case names a commit, a file of it, and lines; of each commit the files that decide what a program is are laid out, and each file is
checked from the repository's top. A defect is told where a finding about memory stands within two lines of one of its lines, or spans
it; a look-alike is an alarm where one stands within a line.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _measure import ROOT, about, documented, table, write

CASES = ROOT / "benchmarks/results/unseen-defects.json"
_KINDS = (".py", ".ipynb", ".toml", ".cfg", ".sh", "requirements.txt")
_NOT_MEMORY = ("GPU000", "GPU603")

Case = dict[str, Any]


def laid_out(clones: Path, into: Path, case: Case) -> Path:
    """The folder with a case's commit, without files that the clone has left out. Raises SystemExit where the commit is not there."""
    folder = into / f"{case['source'].replace('/', '+')}@{case['commit'][:10]}"
    if not folder.exists():
        git = ["git", f"--git-dir={clones / case['source'].replace('/', '+')}"]
        listed = subprocess.run([*git, "ls-tree", "-r", "-z", case["commit"]], capture_output=True)
        if listed.returncode:
            raise SystemExit(
                f"{git[1]}: no commit {case['commit']}; clone {case['source']} there with --mirror"
            )
        rows = [row.partition("\t") for row in listed.stdout.decode().split("\0") if row.startswith("100")]
        for what, _, name in rows:
            if name.endswith(_KINDS):
                text = subprocess.run([*git, "cat-file", "blob", what.split()[2]], capture_output=True)
                if not text.returncode:
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_bytes(text.stdout)
    return folder


def findings(folder: Path, path: str) -> list[tuple[str, int, int, str]]:
    """Code, first and last line, and confidence of what is told of a file with all doubts."""
    command = [sys.executable, "-m", "gpulint", "check", "--isolated", "--no-cache", "--confidence", "low"]
    done = subprocess.run(
        [*command, "--output-format", "json", path], capture_output=True, text=True, cwd=folder
    )
    if done.returncode > 1:
        raise SystemExit(f"{folder / path}: {done.stderr.strip() or 'gpulint failed'}")
    told = [one for one in json.loads(done.stdout) if one["code"] not in _NOT_MEMORY]
    ends = ((one.get("end_location") or one["location"])["row"] for one in told)
    return [
        (one["code"], one["location"]["row"], end, one["confidence"])
        for one, end in zip(told, ends, strict=True)
    ]


def told(case: Case, found: list[tuple[str, int, int, str]], near: int) -> str:
    """How a case is told: by the codes that do, with high confidence where any has it; empty where it is not."""
    lines = {*case["lines"], *case.get("alt_lines", ())}
    hits = [one for one in found if any(abs(one[1] - at) <= near or one[1] <= at <= one[2] for at in lines)]
    level = "high" if any(one[3] == "high" for one in hits) else "low"
    return f"{level} {' '.join(sorted({one[0] for one in hits}))}" if hits else ""


def main() -> None:
    parser = documented(__doc__)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--cases", type=Path, default=CASES)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    record = json.loads(options.cases.read_text(encoding="utf-8"))
    kinds = {"defects": 2, "look-alikes": 1}
    cases = [(case, near) for kind, near in kinds.items() for case in record[kind]]
    with tempfile.TemporaryDirectory() as into, ThreadPoolExecutor(2) as pool:
        folders = [laid_out(options.clones, Path(into), case) for case, _ in cases]
        several = pool.map(findings, folders, (case["path"] for case, _ in cases))
        for (case, near), found in zip(cases, several, strict=True):
            case["told"] = told(case, found, near)
    rows = []
    for kind in kinds:
        counted = Counter(case["told"].partition(" ")[0] for case in record[kind])
        rows.append(
            (kind, str(len(record[kind])), str(counted["high"]), str(counted["high"] + counted["low"]))
        )
    print(table(("", "cases", "told with high confidence", "told at all"), rows))
    if options.out:
        write(options.out, {**about("cpu"), **record})


if __name__ == "__main__":
    main()

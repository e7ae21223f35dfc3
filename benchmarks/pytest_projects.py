"""Runs suites of public projects under the pytest plugin, with and without it in turn: what their tests leave, and what looking costs.

    python benchmarks/pytest_projects.py CHECKOUTS [--pairs 2] [--out FILE] [--only NAME…]

CHECKOUTS is a folder with one checkout for each name below; what the projects need has to be installed. On the CPU. The cost is in
seconds of processor time of the whole run, imports included. `changed` are tests that end otherwise under the plugin.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _measure import hardware  # noqa: E402
from pytest_gpu import environment  # noqa: E402

# Checkout -> what is run of it. Long suites in part: those files that train, or that take most of the project's code.
PROJECTS: dict[str, tuple[str, ...]] = {
    "pytorch_ema": ("tests",),
    "pytorch_optimizer": (
        "tests/test_lr_schedulers.py",
        "tests/test_loss_functions.py",
        "tests/test_utils.py",
        "tests/test_wrapper_optimizers.py",
    ),
    "geoopt": (
        "tests/test_adam.py",
        "tests/test_rsgd.py",
        "tests/test_sparse_adam.py",
        "tests/test_origin.py",
        "tests/test_tensor_api.py",
        "tests/test_euclidean.py",
        "-W",
        "ignore::DeprecationWarning",
    ),
    "x-transformers": (
        "tests/test_x_transformers.py",
        "-k",
        "kv_cache or readme or memory or cope or l2 or rotary",
    ),
}
WAYS = {"leaks": ("--gpu-memory-leaks",)}


@dataclass
class Ran:
    """A run: its status, its last line, how each test ended, processor seconds, what the plugin found out."""

    status: int
    summary: str
    outcomes: dict[str, str]
    seconds: float
    found: dict[str, Any]
    text: str


def run(project: Path, tests: tuple[str, ...], options: tuple[str, ...]) -> Ran:
    """One run of pytest in a project's checkout."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
            "-rA",
            "-q",
            "--tb=no",
        ]
        command += [*tests, *(("-p", "dumping", *options) if options else ("-p", "no:gpulint"))]
        given = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([".", str(HERE.parent), str(HERE / "suites")]),
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "SUITE_RESULT": str(result),
        }
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, cwd=project, env=given, capture_output=True, text=True, timeout=1500)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    lines = done.stdout.splitlines()
    kinds = ("PASSED ", "FAILED ", "ERROR ", "XFAIL ", "XPASS ")
    outcomes = {
        line.split(" ", 1)[1].split(" - ")[0]: line.split(" ")[0] for line in lines if line.startswith(kinds)
    }
    return Ran(
        done.returncode, lines[-1] if lines else "", outcomes, seconds, found, done.stdout + done.stderr
    )


def measure(project: Path, tests: tuple[str, ...], pairs: int) -> dict[str, Any]:
    """Both ways in turn, `pairs` times; what was found is the first run's."""
    seconds: list[list[float]] = []
    kept: list[tuple[Ran, Ran]] = []
    for _ in range(pairs):
        without, looked = run(project, tests, ()), run(project, tests, WAYS["leaks"])
        seconds.append([round(without.seconds, 2), round(looked.seconds, 2)])
        kept.append((without, looked))
    without, looked = kept[0]
    changed = {
        name: [outcome, looked.outcomes.get(name, "not run")]
        for name, outcome in without.outcomes.items()
        if looked.outcomes.get(name) != outcome
    }
    return {
        "tests": " ".join(tests),
        "without": without.summary,
        "with": looked.summary,
        "changed": changed,
        "looked_at": looked.found.get("looked_at"),
        "leftovers": sorted(looked.found.get("leftovers", []), key=lambda one: -one["size"]),
        "processor_seconds": seconds,
        "ratio": round(median(b / a for a, b in seconds), 3),
        "said": "" if looked.found else looked.text[-2000:],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=HERE / "results" / "pytest-projects.json")
    arguments = parser.parse_args()
    report: dict[str, Any] = {"environment": environment("cpu"), "hardware": hardware(), "projects": {}}
    for name, tests in PROJECTS.items():
        if arguments.only and name not in arguments.only:
            continue
        try:
            report["projects"][name] = found = measure(arguments.checkouts / name, tests, arguments.pairs)
            print(name, found["with"], found["ratio"], f"{len(found['leftovers'])} leftovers", flush=True)
        except (OSError, subprocess.SubprocessError) as error:
            report["projects"][name] = {"error": str(error)}
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

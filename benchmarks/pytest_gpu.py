"""Runs suites whose leaks and peaks are known under the pytest plugin, and checks what it says; measures what it costs.

    python benchmarks/pytest_gpu.py                    # on the GPU of this machine: about four minutes
    python benchmarks/pytest_gpu.py --device cpu       # to try the script

Needs pytest, pytest-xdist and pytest-rerunfailures. Writes `benchmarks/results/pytest-<gpu>-<date>.json`, or `--out`. Each part
records its own error. Exit status 1: the plugin said something wrong.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from _measure import HERE
from _parts import Parts, environment, python, run_parts

SUITES = HERE / "suites"
MIB = 1024 * 1024
HELD = "Failed: an attempt before this one still holds its tensor"
PAIRS = 2  # runs with and without the plugin, one after the other
# What the suite `planted` holds, in bytes. On a GPU the graph is freed of nothing that the CPU keeps: the same on both.
LEFT = {
    ("test_leaving.py::test_leaves_list", ""): 8 * MIB,
    ("test_leaving.py::test_keeps_the_network", "module fixture module_network"): 2 * MIB,
}
HOLDERS = {"test_leaves_list": "KEPT", "test_leaves_graph": "GRAPHS", "test_keeps_the_network": "NETWORKS"}
LEAVE_NOTHING = (
    "test_product_makes_workspaces",
    "test_leaves_garbage",
    "test_fails_and_leaves_nothing",
    "test_fills_the_shelf",
)
PEAKS = {
    "test_three_at_once": 48 * MIB,
    "test_with_its_fixture": 16 * MIB,
    "test_with_the_network_of_the_session": 24 * MIB,
}


@dataclass
class Ran:
    """One run of pytest: its status, what it printed, what the suite's conftest wrote down, the seconds it took."""

    status: int
    text: str
    found: dict[str, Any]
    seconds: float


class Runs:
    """Starts pytest on a suite."""

    def __init__(self, device: str, folder: Path) -> None:
        self.device = device
        self.folder = folder

    def __call__(self, suite: str, *options: str, plugin: bool = True, **variables: str) -> Ran:
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
        command += ["-c", os.devnull, "--rootdir", str(SUITES / suite.split("/")[0]), str(SUITES / suite)]
        command += (
            ["-p", "gpulint.pytest_plugin"] if plugin else ["-W", "ignore::pytest.PytestUnknownMarkWarning"]
        )
        command += ["-p", "xdist.plugin", "-p", "pytest_rerunfailures", "-p", "dumping"]
        env = environment("cuda", SUITES, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        env |= {"SUITE_DEVICE": self.device, "SUITE_RESULT": str(result), **variables}
        begin = time.perf_counter()
        done = python(*command, *options, folder=self.folder, env=env)
        seconds = time.perf_counter() - begin
        found = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
        return Ran(done.returncode, done.stdout + done.stderr, found, seconds)


def unsaid(ran: Ran, *parts: str) -> list[str]:
    """What should have been printed and was not."""
    return [f"{part!r} is not said" for part in parts if part not in ran.text]


def leaks(run: Runs) -> dict[str, Any]:
    """What tests leave, with holders; nothing of those that leave nothing."""
    ran = run("planted/test_leaving.py", "--gpu-memory-leaks=error")
    left = {(one["nodeid"], one["owner"]): one for one in ran.found["leftovers"]}
    wrong = [
        f"{key}: {left.get(key)}"
        for key, size in LEFT.items()
        if key not in left or left[key]["size"] != size
    ]
    wrong += [
        f"{nodeid} left {one['size']}" for (nodeid, _), one in left.items() if nodeid.endswith(LEAVE_NOTHING)
    ]
    for name, holder in HOLDERS.items():
        one = next((one for (nodeid, _), one in left.items() if nodeid.endswith(name)), None)
        if one is None or not any(holder in text for text in one["holders"]):
            wrong.append(f"{name} is not held by {holder}: {one}")
        if one is not None and not any("born in" in text for text in one["births"]):
            wrong.append(f"{name}: no birth")
    wrong += unsaid(ran, "3 errors", "1 failed")
    return {"leftovers": ran.found["leftovers"], "wrong": wrong, "text": ran.text[-6000:]}


def peaks(run: Runs) -> dict[str, Any]:
    """Peaks that are known, in one process, in two workers on one card, and one test alone: the same."""
    wrong: list[str] = []
    found: dict[str, dict[str, int]] = {}
    ways = {
        "one process": (),
        "two workers": ("-n", "2"),
        "alone": ("-k", "network_of_the_session"),
        "after tests that leave": (str(SUITES / "planted" / "test_leaving.py"),),
    }
    for way, options in ways.items():
        file = run.folder / f"{way.replace(' ', '-')}.json"
        ran = run(
            "planted/test_peaks.py",
            "--gpu-memory-baseline",
            str(file),
            "--gpu-memory-write-baseline",
            *options,
        )
        measured = {key.rsplit("::", 1)[-1]: peak["allocated"] for key, peak in ran.found["peaks"].items()}
        found[way] = measured
        expected = PEAKS if way != "alone" else {key: PEAKS[key] for key in measured}
        wrong += [
            f"{way}: {name} {measured.get(name)}, not {size}"
            for name, size in expected.items()
            if measured.get(name) != size
        ]
    over = run("planted/test_peaks.py", "-k", "over_its_limit or steps_and_peak or fixture_asks")
    wrong += unsaid(
        over, "2 failed, 1 passed", "list `kept`", "born in test_over_its_limit", "global list `STEPS`"
    )
    return {"peaks": found, "wrong": wrong, "text": over.text[-5000:]}


def baselines(run: Runs) -> dict[str, Any]:
    """Written, held against, grown, and another card."""
    file = run.folder / "memory.json"
    given = ("planted/test_peaks.py", "-k", "three_at_once or with_its", "--gpu-memory-baseline", str(file))
    written = run(*given, "--gpu-memory-write-baseline")
    same, grown = run(*given), run(*given, SUITE_GROWN="4")
    wrong = [
        f"{name} ended with {ran.status}"
        for name, ran in (("written", written), ("same", same))
        if ran.status
    ]
    wrong += unsaid(grown, "grew from 16.00 MiB to 20.00 MiB", "test_peaks.py:")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(json.dumps(written.found["cards"][0]), '"Another Card"'), encoding="utf-8")
    elsewhere = run(*given)
    wrong += unsaid(elsewhere, "has no peak of this test", "Another Card")
    wrong += [f"ended with {ran.status}, not 1" for ran in (grown, elsewhere) if ran.status != 1]
    told = {"text": grown.text[-4000:], "elsewhere": elsewhere.text[-2000:]}
    return {"file": json.loads(text), "wrong": wrong, **told}


def reruns(run: Runs) -> dict[str, Any]:
    """A traceback keeps no tensor through reruns; without the plugin it does."""
    with_plugin = run("planted/test_reruns.py", "--reruns", "2")
    without = run("planted/test_reruns.py", "--reruns", "2", plugin=False)
    wrong = unsaid(with_plugin, "meant to fail") + ["held through a rerun"] * (HELD in with_plugin.text)
    held = {"without the plugin it is held": HELD in without.text}
    return {"wrong": wrong, **held, "text": with_plugin.text[-2500:]}


def syncs(run: Runs) -> dict[str, Any]:
    """Waiting for the GPU, by line; skipped where there is none."""
    ran = run("planted/test_syncs.py", "-rs")
    expected: tuple[str, ...] = (
        "1 failed, 1 passed",
        "waited for the GPU 2 times",
        "test_syncs.py:13",
        "test_syncs.py:15",
    )
    if run.device == "cpu":
        expected = ("2 skipped",)
    return {"wrong": unsaid(ran, *expected), "text": ran.text[-3000:]}


def looked_at(run: Runs, suite: str, expected: str) -> dict[str, Any]:
    """A suite whose tests are looked at for leaks, and whose peaks are measured."""
    peaks = ("--gpu-memory-baseline", "own.json", "--gpu-memory-write-baseline", "--gpu-memory-all")
    ways = {"leaks": ("--gpu-memory-leaks",), "peaks": peaks}
    ran = {name: run(suite, *options) for name, options in ways.items()}
    wrong = [f"{name}: {what}" for name, one in ran.items() for what in unsaid(one, expected)]
    return {"wrong": wrong, "texts": {name: one.text[-2500:] for name, one in ran.items()}}


def forks(run: Runs) -> dict[str, Any]:
    """To look at tests initializes no CUDA: what a test forks may use it."""
    return looked_at(run, "planted/test_forks.py", "2 passed")


def graphs(run: Runs) -> dict[str, Any]:
    """A graph that was captured before finds its workspace where it was, and nobody else's tensors there."""
    without = run("planted/test_graphs.py", plugin=False)
    found = looked_at(run, "planted/test_graphs.py", "3 skipped" if run.device == "cpu" else "3 passed")
    return {**found, "without the plugin": without.text[-2500:]}


def gpu_asked_for(run: Runs) -> dict[str, Any]:
    """A run that asks for a GPU is no green run where there is none."""
    ran = run("training", "--gpu-memory-device", "cuda", CUDA_VISIBLE_DEVICES="")
    return {"wrong": [] if ran.status == 4 else [f"ended with {ran.status}"], "text": ran.text[-1000:]}


def cost(run: Runs) -> dict[str, Any]:
    """Forty small trainings: without the plugin, with it and no option, looked at for leaks, and their peaks measured. Seconds of the
    whole run; of each way the median and the ratio to the run without just before."""
    ways: dict[str, tuple[str, ...]] = {
        "idle": (),
        "leaks": ("--gpu-memory-leaks",),
        "peaks": ("--gpu-memory-baseline", "cost.json", "--gpu-memory-write-baseline", "--gpu-memory-all"),
    }
    seconds: dict[str, list[list[float]]] = {name: [] for name in ways}
    for _ in range(PAIRS):
        for name, options in ways.items():
            without = run("training", plugin=False).seconds
            seconds[name].append([without, run("training", *options).seconds])
    return {
        "wrong": [],
        "pairs": seconds,
        "ratio": {name: round(median(b / a for a, b in pairs), 3) for name, pairs in seconds.items()},
    }


PARTS: tuple[Callable[[Runs], dict[str, Any]], ...] = (
    leaks, peaks, baselines, reruns, syncs, forks, graphs, gpu_asked_for, cost,
)  # fmt: skip


def measure(device: str, parts: Parts) -> None:
    def one(part: Callable[[Runs], dict[str, Any]]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            found = part(Runs(device, Path(folder)))
        for what in found["wrong"]:
            parts.want(False, f"{part.__name__}: {what}")
        return found

    for part in PARTS:
        parts.part(part.__name__, partial(one, part))


if __name__ == "__main__":
    sys.exit(run_parts("pytest", __doc__, measure))

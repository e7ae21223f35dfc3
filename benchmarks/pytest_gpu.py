"""Runs suites whose leaks and peaks are known under the pytest plugin, and checks what it says; measures what it costs.

    python benchmarks/pytest_gpu.py                    # on the GPU of this machine: about four minutes
    python benchmarks/pytest_gpu.py --device cpu       # to try the script

Needs pytest, pytest-xdist and pytest-rerunfailures. Writes `benchmarks/results/pytest-<gpu>-<date>.json`, or `--out`. Each part
records its own error. Exit status 1: the plugin said something wrong.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
SUITES = HERE / "suites"
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _measure import hardware  # noqa: E402

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

    def __call__(self, suite: str, *options: str, plugin: bool = True, **environment: str) -> Ran:
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
        command += ["-c", os.devnull, "--rootdir", str(SUITES / suite.split("/")[0]), str(SUITES / suite)]
        command += (
            ["-p", "gpulint.pytest_plugin"] if plugin else ["-W", "ignore::pytest.PytestUnknownMarkWarning"]
        )
        command += ["-p", "xdist.plugin", "-p", "pytest_rerunfailures", "-p", "dumping"]
        given = {
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(HERE.parent), str(SUITES), os.environ.get("PYTHONPATH")])
            ),
            "SUITE_DEVICE": self.device,
            "SUITE_RESULT": str(result),
            **environment,
        }
        begin = time.perf_counter()
        done = subprocess.run(
            [*command, *options], env=given, cwd=self.folder, capture_output=True, text=True, timeout=200
        )
        seconds = time.perf_counter() - begin
        found = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
        return Ran(done.returncode, done.stdout + done.stderr, found, seconds)


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
    if "3 errors" not in ran.text or "1 failed" not in ran.text:
        wrong.append("not three errors and one failure")
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
    wrong += [
        f"{part!r} is not said"
        for part in (
            "2 failed, 1 passed",
            "list `kept`",
            "born in test_over_its_limit",
            "global list `STEPS`",
        )
        if part not in over.text
    ]
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
    if (
        grown.status != 1
        or "grew from 16.00 MiB to 20.00 MiB" not in grown.text
        or "test_peaks.py:" not in grown.text
    ):
        wrong.append("growth is not told")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(json.dumps(written.found["cards"][0]), '"Another Card"'), encoding="utf-8")
    elsewhere = run(*given)
    if (
        elsewhere.status != 1
        or "has no peak of this test" not in elsewhere.text
        or "Another Card" not in elsewhere.text
    ):
        wrong.append("an entry of another card was taken for this one's")
    return {
        "file": json.loads(text),
        "wrong": wrong,
        "text": grown.text[-4000:],
        "elsewhere": elsewhere.text[-2000:],
    }


def reruns(run: Runs) -> dict[str, Any]:
    """A traceback keeps no tensor through reruns; without the plugin it does."""
    with_plugin = run("planted/test_reruns.py", "--reruns", "2")
    without = run("planted/test_reruns.py", "--reruns", "2", plugin=False)
    wrong = (
        ["held through a rerun"]
        if "meant to fail" not in with_plugin.text or HELD in with_plugin.text
        else []
    )
    return {
        "wrong": wrong,
        "without the plugin it is held": HELD in without.text,
        "text": with_plugin.text[-2500:],
    }


def syncs(run: Runs) -> dict[str, Any]:
    """Waiting for the GPU, by line; skipped where there is none."""
    ran = run("planted/test_syncs.py", "-rs")
    if run.device == "cpu":
        return {"wrong": [] if "2 skipped" in ran.text else ["not skipped"], "text": ran.text[-2000:]}
    expected = ("1 failed, 1 passed", "waited for the GPU 2 times", "test_syncs.py:13", "test_syncs.py:15")
    return {
        "wrong": [f"{part!r} is not said" for part in expected if part not in ran.text],
        "text": ran.text[-3000:],
    }


def forks(run: Runs) -> dict[str, Any]:
    """To look at tests initializes no CUDA: what a test forks may use it."""
    ways = {
        "leaks": ("--gpu-memory-leaks",),
        "peaks": ("--gpu-memory-baseline", "forks.json", "--gpu-memory-write-baseline", "--gpu-memory-all"),
    }
    ran = {name: run("planted/test_forks.py", *options) for name, options in ways.items()}
    return {
        "wrong": [f"{name}: not two passed" for name, one in ran.items() if "2 passed" not in one.text],
        "texts": {name: one.text[-2500:] for name, one in ran.items()},
    }


def graphs(run: Runs) -> dict[str, Any]:
    """A graph that was captured before finds its workspace where it was, and nobody else's tensors there."""
    without = run("planted/test_graphs.py", plugin=False)
    ways = {
        "leaks": ("--gpu-memory-leaks",),
        "peaks": ("--gpu-memory-baseline", "graphs.json", "--gpu-memory-write-baseline", "--gpu-memory-all"),
    }
    ran = {name: run("planted/test_graphs.py", *options) for name, options in ways.items()}
    expected = "3 skipped" if run.device == "cpu" else "3 passed"
    return {
        "wrong": [f"{name}: not {expected}" for name, one in ran.items() if expected not in one.text],
        "without the plugin": without.text[-2500:],
        "texts": {name: one.text[-2500:] for name, one in ran.items()},
    }


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


def environment(device: str) -> dict[str, str]:
    """torch, and the card's name: asked in a process of its own, which takes its context with it."""
    ask = "import torch; print(torch.__version__); print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.splitlines()
    return {
        "device": device,
        "device_name": told[1] if len(told) > 1 else "",
        "torch": told[0] if told else "",
    }


PARTS: tuple[Callable[[Runs], dict[str, Any]], ...] = (
    leaks,
    peaks,
    baselines,
    reruns,
    syncs,
    forks,
    graphs,
    gpu_asked_for,
    cost,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--out", default="")
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    report: dict[str, Any] = {
        "environment": environment(arguments.device),
        "hardware": hardware(),
        "parts": {},
    }
    card = re.sub(r"[^a-z0-9]+", "-", report["environment"]["device_name"].lower()).strip("-") or "cpu"
    default = HERE / "results" / f"pytest-{card}-{datetime.date.today().isoformat()}.json"
    target = Path(arguments.out) if arguments.out else default
    wrong = 0
    for part in PARTS:
        if arguments.only and part.__name__ not in arguments.only:
            continue
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = part(Runs(arguments.device, Path(folder)))
            except Exception:
                found = {"wrong": [traceback.format_exc()]}
        found["seconds"] = round(time.perf_counter() - begin, 1)
        wrong += len(found["wrong"])
        report["parts"][part.__name__] = found
        target.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(
            f"{part.__name__:15} {found['seconds']:6.1f} s  {'; '.join(found['wrong']) or 'ok'}", flush=True
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

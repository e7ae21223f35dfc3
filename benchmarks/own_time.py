"""What of a training loop's time is gpulint's own, part by part, taken within the process.

    python benchmarks/own_time.py CHECKOUTS OUT.json [--device cpu|cuda] [--only NAME] [--runs 2]

The scripts with a loop of 200 steps (`public_scripts.py`) run watched, with clocks around gpulint's parts
(`_timed_child.py`): seconds from the first step to the last, and how much of them each part took. The clocks' own
time, under a microsecond a call, is in the figures. What torch takes to record where memory is allocated happens
outside of the parts: one more run turns it on and off after the sampled steps, and `recording` has a step's median
time with it and without. That run also counts the calls of modules within modules, which pass through gpulint with no
clock around them; what such a call costs is taken apart. `added` is the sum of all that, less the clocks.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from _measure import HERE, table
from _parts import about, write
from _scripts import Script, chosen
from _timed_child import TURN
from public_scripts import Bench, described, watch

SCRIPT = "the script"
SAMPLED = 21  # steps in which allocations are recorded: the last of warm-up, and the sampled ones


def measured(bench: Bench, script: Script, runs: int) -> dict[str, Any]:
    """The parts' times in each of the runs."""
    assert script.loop is not None
    found = [told(followed(bench, script)) for _ in range(runs)]
    record = {**described(script, bench.device, script.loop), "runs": found}
    again = followed(bench, script, recording=True)
    extra = {
        "recording": recorded(again["steps"]) if bench.device == "cuda" else None,
        "module_calls": again["calls"],
        "module_call_us": round(1e6 * again["call_s"], 3),
        "clock_us": round(1e6 * again["clock_s"], 3),
    }
    return {**record, **extra, **summed(record["runs"], extra)}


def summed(runs: Sequence[Mapping[str, Any]], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that gpulint adds, in milliseconds and as a share of the rest of the loop; the middle of the runs."""
    recording = extra["recording"] or {"on_ms": 0.0, "off_ms": 0.0}
    sampling = SAMPLED * max(0.0, recording["on_ms"] - recording["off_ms"])
    calls = extra["module_calls"] * extra["module_call_us"] / 1000
    added, shares = [], []
    for run in runs:
        clocks = sum(number for _, number in run["parts"].values()) * extra["clock_us"] / 1000
        added.append(run["own_ms"] - clocks + sampling + calls)
        shares.append(added[-1] / (1000 * run["loop_s"] - run["own_ms"] - sampling - calls))
    return {
        "recording_ms": round(sampling, 1),
        "within_calls_ms": round(calls, 1),
        "added_ms": round(statistics.median(added), 1),
        "added_share": round(statistics.median(shares), 4),
        "added_shares": [round(share, 4) for share in shares],
    }


def followed(bench: Bench, script: Script, recording: bool = False) -> dict[str, Any]:
    """What the timed child has written in one run."""
    answer = bench.folder / "own-time.json"
    os.environ["OWN_TIME"] = str(answer)
    if recording:
        os.environ["OWN_TIME_RECORDING"] = "1"
    try:
        bench.run(script, True, script.loop)
    finally:
        os.environ.pop("OWN_TIME_RECORDING", None)
    told: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return told


def recorded(ends: Sequence[float]) -> dict[str, Any]:
    """A step's milliseconds with allocations recorded and without; steps by which it is turned are left out."""
    took: dict[bool, list[float]] = {True: [], False: []}
    for step in range(4 * TURN + 1, len(ends)):
        if step % TURN:
            took[step // TURN % 2 == 0].append(1000 * (ends[step] - ends[step - 1]))
    on, off = (statistics.median(took[way]) for way in (True, False))
    return {"on_ms": round(on, 3), "off_ms": round(off, 3), "steps": len(took[True]) + len(took[False])}


def told(answer: Mapping[str, Any]) -> dict[str, Any]:
    """One run's figures: milliseconds and calls of each part, the most expensive first."""
    steps = answer["steps"]
    parts = {name: total for name, total in answer["parts"].items() if name != SCRIPT}
    ordered = sorted(parts.items(), key=lambda part: -part[1][0])
    loop = steps[-1] - steps[0]
    own = sum(seconds for seconds, _ in parts.values())
    return {
        "steps": len(steps),
        "loop_s": round(loop, 3),
        "own_ms": round(1000 * own, 1),
        "share": round(own / loop, 4),
        "parts": {name: [round(1000 * seconds, 2), int(calls)] for name, (seconds, calls) in ordered},
        "step_ms": [round(1000 * (b - a), 2) for a, b in itertools.pairwise(steps)],
    }


def shown(records: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for record in records:
        run = min(record["runs"], key=lambda one: one["own_ms"])
        whole = f"{run['own_ms']} ms of {run['loop_s']} s"
        rows.append((record["name"], "all", whole, f"{100 * run['share']:.2f} %"))
        rows.append(("", "recording allocations", f"{record['recording_ms']} ms", f"in {SAMPLED} steps"))
        rows.append(
            ("", "modules in modules", f"{record['within_calls_ms']} ms", f"{record['module_calls']} calls")
        )
        rows.append(("", "added in all", f"{record['added_ms']} ms", f"{100 * record['added_share']:.2f} %"))
        rows += [
            ("", name, f"{ms} ms", f"{calls} calls")
            for name, (ms, calls) in run["parts"].items()
            if ms >= 0.3
        ]
    return table(("script", "part", "time", ""), rows)


def main() -> int:
    if sys.argv[1] == "watch":
        from gpulint.runtime.parent import runner

        runner.CHILD = str(HERE / "_timed_child.py")
        return watch(json.loads(sys.argv[2]))

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("out", type=Path, metavar="OUT.json")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="part of a script's name")
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    head = about(given.device)
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="own-time-") as folder:
        bench = Bench(given.checkouts.resolve(), given.device, {"to_end": True}, Path(folder))
        bench.watcher = HERE / "own_time.py"
        for script in chosen(given.only, loops=True):
            records.append(measured(bench, script, given.runs))
            write(given.out, {**head, "scripts": records})
    print(shown(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())

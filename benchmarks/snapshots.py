"""Holds `gpulint snapshot` to a GPU: real snapshots read, and what the model predicts against what really was reserved.

    python benchmarks/snapshots.py --out DIR            # on a GPU: about four minutes
    python benchmarks/snapshots.py --out DIR --read FILE  # no GPU: how long a snapshot takes to read, and how much memory

Writes DIR/snapshots.json and a few small snapshots, gzipped. A part that fails is recorded and does not end the others.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from _measure import HERE, hardware
from _parts import Parts, environment, gpulint, printed, python, write

from gpulint.memory.alloc_conf import NEW, OLD
from gpulint.snapshot.reading import read
from gpulint.snapshot.recording import Lines
from gpulint.snapshot.usage import usage_of
from gpulint.snapshot.whatif import SENSIBLE, what_if

WORKLOADS = ("lengths", "validation", "fragmentation", "rollouts", "streams")
RECORDED = ("", "expandable_segments:True")
KEPT = {  # name: workload, settings, further options
    "default": ("small", "", ()),
    "expandable": ("small", "expandable_segments:True", ()),
    "ring": ("validation", "", ("--entries", "3000")),
    "cpp": ("small", "", ("--stacks", "all")),
    "oom": ("out_of_memory", "", ()),
    "graphs": ("graphs", "", ()),
}
LONGEST = "4500000"  # events of the snapshot that is to be larger than 1 GB
VERIFIED = """
import torch
from torch import nn
model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for step in range(40):
    loss = model(torch.randn(64, 512, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
"""
UNPICKLED = """
import pickle, resource, sys, time
class Refusing(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")
began = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    Refusing(file).load()
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
READ = """
import json, resource, sys, time
from gpulint.snapshot.reading import read
from gpulint.snapshot import Asked, summary_of
began = time.perf_counter()
recording = read(sys.argv[1])
middle = time.perf_counter()
summary = summary_of(recording, sys.argv[1], Asked())
print(json.dumps({
    "read_seconds": round(middle - began, 1), "seconds": round(time.perf_counter() - began, 1),
    "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    "events": sum(len(trace) for trace in recording.traces), "stacks": len(recording.stacks),
    "peak_allocated": summary.devices[0].usage.peak_allocated, "peak_reserved": summary.devices[0].usage.peak_reserved,
}))
"""


def figures_of(settings: str, script: Path, *words: str, limit: float = 120) -> Any:
    """What a process under these settings of the allocator prints last: JSON."""
    env = {name: value for name, value in os.environ.items() if name not in (OLD, NEW)}
    env |= {OLD: settings} if settings else {}
    return json.loads(printed(python(script, *words, env=env, limit=limit)).splitlines()[-1])


class Bench(Parts):
    """The parts, and what came of each; their errors are in `problems`."""

    def __init__(self, out: Path, scratch: Path) -> None:
        self.out, self.scratch = out, scratch
        self.found: dict[str, Any] = {"hardware": hardware(), "predictions": [], "read": {}}
        super().__init__(save=self._save)

    def _save(self) -> None:
        write(self.out / "snapshots.json", {**self.found, "errors": self.problems})

    # -- workloads ---------------------------------------------------------------------------------------------

    def run(
        self, workload: str, settings: str, snapshot: str, *more: str, limit: float = 150
    ) -> dict[str, Any]:
        """The figures of one workload in a process of its own."""
        return figures_of(settings, HERE / "_snapshot_child.py", workload, snapshot, *more, limit=limit)

    def predict(self, workload: str, runs: dict[str, Future[dict[str, Any]]], recorded: str) -> None:
        """Every setting from one recording: what the model says, and what a run under it reserved."""
        path = self.path(workload, recorded)
        recording = read(path)
        usage = usage_of(recording, 0, Lines(recording))
        began = time.monotonic()
        tried = what_if(recording, 0, SENSIBLE)
        spent = time.monotonic() - began
        for outcome in tried.outcomes:
            real = runs[outcome.setting].result()
            row = {
                "workload": workload,
                "recorded": recorded,
                "setting": outcome.setting,
                "predicted_reserved": outcome.peak_reserved,
                "real_reserved": real["peak_reserved"],
                "error": round(outcome.peak_reserved / real["peak_reserved"] - 1, 5),
                "unsure": round(outcome.unsure / outcome.peak_reserved, 5),
                "predicted_allocated": outcome.peak_allocated,
                "real_allocated": real["peak_allocated"],
                "control_error": round(tried.error, 5),
                "trace_peak_reserved": usage.peak_reserved,
                "trace_peak_allocated": usage.peak_allocated,
                "events": usage.events,
                "seconds_for_all": round(spent, 2),
                "doubts": tried.doubts,
            }
            self.found["predictions"].append(row)
            print(
                f"{workload:<14} {recorded or 'default':<26} {outcome.setting or 'default':<50} {row['error']:+.2%}"
            )

    def path(self, workload: str, recorded: str) -> Path:
        return self.scratch / f"{workload}-{'expandable' if recorded else 'default'}.pickle"

    # -- snapshots that are kept -------------------------------------------------------------------------------

    def keep(self, name: str) -> None:
        workload, settings, more = KEPT[name]
        path = self.scratch / f"real-{name}.pickle"
        figures = self.run(workload, settings, str(path), *more)
        recording = read(path)
        usage = usage_of(recording, 0, Lines(recording))
        target = self.out / f"real-{name}.pickle.gz"
        with open(path, "rb") as source, gzip.open(target, "wb", 9) as packed:
            shutil.copyfileobj(source, packed)
        self.found.setdefault("kept", {})[name] = {
            **figures,
            "bytes": path.stat().st_size,
            "packed": target.stat().st_size,
            "trace_peak_allocated": usage.peak_allocated,
            "trace_peak_reserved": usage.peak_reserved,
            "trace_end_allocated": usage.end_allocated,
            "trace_end_reserved": usage.end_reserved,
            "unsplit": usage.unsplit,
            "ooms": len(usage.ooms),
        }
        if target.stat().st_size > 2 << 20:
            target.unlink()

    # -- a large one -------------------------------------------------------------------------------------------

    def large(self, made: Future[dict[str, Any]]) -> None:
        """Read in a process of its own, beside Python's unpickler."""
        figures = made.result()
        self.found["read"] = {"made": figures}
        self.read(self.scratch / "long.pickle")

    def read(self, path: Path) -> None:
        """How long it takes and how much memory, here and by Python's own unpickler."""
        found = self.found["read"]
        found["bytes"] = path.stat().st_size
        told, unpickled = (
            printed(python("-c", code, path, env=environment(), limit=400)) for code in (READ, UNPICKLED)
        )
        found["gpulint"] = json.loads(told)
        seconds, rss = map(float, unpickled.split())
        found["unpickler"] = {"seconds": round(seconds, 1), "peak_rss_mib": round(rss)}
        print(json.dumps(found, indent=2))

    def verify(self) -> None:
        """`gpulint verify --snapshot`, and the snapshot that it leaves."""
        script, path = self.scratch / "train.py", self.scratch / "verified.pickle"
        script.write_text(VERIFIED)
        asked = ("-q", "--output-format", "json", "--snapshot", path, script)
        done = gpulint("verify", *asked, folder=self.scratch, limit=100)
        self.found["verify"] = {"status": done.returncode, "said": done.stderr.strip()[-500:]}
        recording = read(path)
        usage = usage_of(recording, 0, Lines(recording))
        self.found["verify"] |= {
            "bytes": path.stat().st_size,
            "events": usage.events,
            "peak_allocated": usage.peak_allocated,
            "lines": [[os.path.basename(str(share.line)), share.bytes] for share in usage.at_end[:5]],
            "drift": json.loads(done.stdout).get("drift"),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", help="only this workload, to try the script")
    parser.add_argument("--read", type=Path, metavar="FILE", help="only read this snapshot, and measure that")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="snapshots-") as folder:
        bench = Bench(given.out, Path(folder))
        if given.read is not None:
            bench.part("read", lambda: bench.read(given.read))
            return 1 if bench.problems else 0
        workloads = [one for one in WORKLOADS if given.only in (None, one)]
        with ThreadPoolExecutor(6) as pool:
            long = (str(Path(folder, "long.pickle")), "--entries", LONGEST, "--stacks", "all")
            large = pool.submit(bench.run, "long", "", *long, limit=200)

            def begun(workload: str, setting: str) -> Future[dict[str, Any]]:
                kept = str(bench.path(workload, setting)) if setting in RECORDED else "-"
                return pool.submit(bench.run, workload, setting, kept)

            runs = {one: {setting: begun(one, setting) for setting in SENSIBLE} for one in workloads}
            kept = list(KEPT) if given.only is None else []
            for name in kept:
                bench.part(f"keep {name}", partial(bench.keep, name))
            for workload in workloads:
                for recorded in RECORDED:
                    name = f"predict {workload} from {recorded or 'default'}"
                    bench.part(name, partial(bench.predict, workload, runs[workload], recorded))
            bench.part("verify", bench.verify)
            bench.part("large", lambda: bench.large(large))
    return 1 if bench.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())

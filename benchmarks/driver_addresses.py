"""Where the driver puts torch's segments: which of two free blocks of one size is used depends on it, and so what is reserved.

    python benchmarks/driver_addresses.py --out DIR    # on a GPU: about three minutes

Writes DIR/driver-addresses.json, what the driver answered to requests for memory, and DIR/traces/WORKLOAD-SETTINGS.pickle.gz, the
workloads of snapshots.py recorded without stacks under every setting that takes its segments from cudaMalloc. What fails is
written down and does not end the rest.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _measure import hardware  # noqa: E402

from gpulint.memory.alloc_conf import NEW, OLD  # noqa: E402

WORKLOADS = ("lengths", "validation", "fragmentation", "rollouts", "streams")
SETTINGS = (
    "",
    "max_split_size_mb:128",
    "max_split_size_mb:512",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
)
SEEDS = range(24)


def child(settings: str, *command: str) -> str:
    """What one process prints."""
    environment = {name: value for name, value in os.environ.items() if name not in (OLD, NEW)}
    if settings:
        environment[OLD] = settings
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return done.stdout.splitlines()[-1]


def asked(seed: int) -> list[list[int]]:
    """What the driver answered: [bytes or the number given back, address]."""
    found: list[list[int]] = json.loads(child("", str(HERE / "_driver_addresses_child.py"), str(seed)))
    return found


def in_mib(events: list[list[int]]) -> list[list[int]]:
    return [[what >> 20 if what > 0 else what, address >> 20] for what, address in events]


def recorded(workload: str, settings: str, scratch: Path, out: Path) -> dict[str, Any]:
    """The figures of one workload, its trace kept."""
    name = f"{workload}-{settings.replace(':', '-') or 'default'}"
    path = scratch / f"{name}.pickle"
    figures: dict[str, Any] = json.loads(
        child(settings, str(HERE / "_snapshot_child.py"), workload, str(path), "--context", "none")
    )
    with open(path, "rb") as source, gzip.open(out / f"{name}.pickle.gz", "wb", 6) as packed:
        shutil.copyfileobj(source, packed)
    path.unlink()
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    traces = given.out / "traces"
    traces.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {
        "hardware": hardware(),
        "unit": "MiB: [size, address] of a request, [-number - 1, address] of what is given back",
        "errors": {},
        "asked": {},
        "runs": {},
    }

    def part(group: str, name: str, work: Callable[[], object]) -> None:
        try:
            found[group][name] = work()
        except Exception as error:
            found["errors"][name] = f"{type(error).__name__}: {error}"
        print(f"{name}: {found['errors'].get(name, 'done')}", flush=True)
        (given.out / "driver-addresses.json").write_text(json.dumps(dict(found)) + "\n")

    with tempfile.TemporaryDirectory(prefix="addresses-") as folder, ThreadPoolExecutor(6) as pool:
        probes = {seed: pool.submit(asked, seed) for seed in SEEDS}
        runs = {
            (workload, settings): pool.submit(recorded, workload, settings, Path(folder), traces)
            for workload in WORKLOADS
            for settings in SETTINGS
        }
        for seed, future in probes.items():
            part("asked", str(seed), lambda one=future: in_mib(one.result()))  # type: ignore[misc]
        for (workload, settings), future in runs.items():
            part("runs", f"{workload} {settings or 'default'}", future.result)
    return 1 if found["errors"] else 0


if __name__ == "__main__":
    raise SystemExit(main())

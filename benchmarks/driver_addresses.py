"""Where the driver puts torch's segments: which of two free blocks of one size is used depends on it, and so what is reserved.

    python benchmarks/driver_addresses.py --out DIR    # on a GPU: about three minutes

Writes DIR/driver-addresses.json, what the driver answered to requests for memory, and DIR/traces/WORKLOAD-SETTINGS.pickle.gz, the
workloads of snapshots.py recorded without stacks under every setting that takes its segments from cudaMalloc. What fails is
written down and does not end the rest.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _measure import HERE, hardware
from _parts import Parts, write
from snapshots import WORKLOADS, figures_of

SETTINGS = (
    "", "max_split_size_mb:128", "max_split_size_mb:512", "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
)  # fmt: skip
SEEDS = range(24)


def asked(seed: int) -> list[list[int]]:
    """What the driver answered: [bytes or the number given back, address]."""
    found: list[list[int]] = figures_of("", HERE / "_driver_addresses_child.py", str(seed))
    return found


def in_mib(events: list[list[int]]) -> list[list[int]]:
    return [[what >> 20 if what > 0 else what, address >> 20] for what, address in events]


def recorded(workload: str, settings: str, scratch: Path, out: Path) -> dict[str, Any]:
    """The figures of one workload, its trace kept."""
    name = f"{workload}-{settings.replace(':', '-') or 'default'}"
    path = scratch / f"{name}.pickle"
    child = HERE / "_snapshot_child.py"
    figures: dict[str, Any] = figures_of(settings, child, workload, str(path), "--context", "none")
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
    unit = "MiB: [size, address] of a request, [-number - 1, address] of what is given back"
    groups: dict[str, dict[str, Any]] = {"asked": {}, "runs": {}}
    problems: list[str] = []

    def save() -> None:
        record = {"hardware": hardware(), "unit": unit, "errors": problems, **groups}
        write(given.out / "driver-addresses.json", record)

    of = {name: Parts("", save, record, problems) for name, record in groups.items()}
    with tempfile.TemporaryDirectory(prefix="addresses-") as folder, ThreadPoolExecutor(6) as pool:
        probes = {seed: pool.submit(asked, seed) for seed in SEEDS}
        runs = {
            (workload, settings): pool.submit(recorded, workload, settings, Path(folder), traces)
            for workload in WORKLOADS
            for settings in SETTINGS
        }
        for seed, future in probes.items():
            of["asked"].part(str(seed), lambda one=future: in_mib(one.result()))  # type: ignore[misc]
        for (workload, settings), future in runs.items():
            of["runs"].part(f"{workload} {settings or 'default'}", future.result)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The memory kit on a GPU: what the helpers that people write by hand free, and what the kit frees.

    python benchmarks/kit_gpu.py [--out FILE] [--only SECTION ...]

Each section runs in a process of its own and gives a dict; all of them go to `kit-<gpu>-<date>.json`. Without CUDA
the sections that need it are reported as skipped, the others run. Needs torch; click and nvidia-ml-py are used
where they are installed. Exit status 1: a section failed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _measure import about, result_path, write
from kit_cases import SECTIONS, device, python

LIMIT = 580.0  # seconds for one section

for _sections in ("library", "commands"):
    importlib.import_module(f"kit_cases.{_sections}")


def section(name: str) -> dict[str, Any]:
    rows, needs_cuda, function = SECTIONS[name]
    skipped = needs_cuda and device() != "cuda"
    return {"rows": rows, **({"skipped": "needs a CUDA device"} if skipped else function())}


def apart(name: str) -> dict[str, Any]:
    """What a section found, in a process of its own, or its error."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        try:
            done = python(__file__, "--section", name, "--out", result, limit=LIMIT, IPYTHONDIR=folder)
        except subprocess.TimeoutExpired:
            return {"error": f"did not end within {LIMIT:.0f} s"}
        if not result.exists():
            return {"error": done.stderr.strip()[-3000:] or f"exit status {done.returncode}"}
        found: dict[str, Any] = json.loads(result.read_text())
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="where the JSON goes, instead of benchmarks/results/")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION")
    parser.add_argument("--section", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.section:
        write(given.out, section(given.section))
        return 0
    results = about(device())
    path = given.out or result_path("kit", results)
    failed = False
    for name in given.only or SECTIONS:
        begin = time.monotonic()
        found = results[name] = apart(name)
        error = found.get("error", "")
        failed = failed or bool(error)
        print(f"{name}: {time.monotonic() - begin:.1f} s {error[-300:]}", flush=True)
        write(path, results)
    print(f"written to {path}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

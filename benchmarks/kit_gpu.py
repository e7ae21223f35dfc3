"""The memory kit on a GPU: what the helpers that people write by hand free, and what the kit frees.

    python benchmarks/kit_gpu.py [--out FOLDER] [--only SECTION ...] [--list]

Each section runs in a process of its own and gives a dict; all of them go to `kit-<gpu>-<date>.json`. Without CUDA
the sections that need it are reported as skipped, the others run. Needs torch; click and nvidia-ml-py are used
where they are installed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit_cases import ROOT, SECTIONS, device

for _sections in ("library", "commands"):
    importlib.import_module(f"kit_cases.{_sections}")


def run_section(name: str) -> dict[str, Any]:
    """One section in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "result.json")
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--section", name, "--result", str(target)],
            capture_output=True,
            text=True,
            timeout=580,
        )
        seconds = time.perf_counter() - begin
        if not target.exists():
            return {
                "error": done.stderr.strip()[-3000:] or f"exit status {done.returncode}",
                "seconds": seconds,
            }
        return {**json.loads(target.read_text()), "seconds_taken": round(seconds, 2)}


def one(name: str, target: Path) -> None:
    _, needs_cuda, function = SECTIONS[name]
    if needs_cuda and device() != "cuda":
        target.write_text(json.dumps({"skipped": "needs a CUDA device"}))
        return
    target.write_text(json.dumps(function(), default=str))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--only", nargs="+", choices=sorted(SECTIONS))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--section", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.section:
        one(given.section, given.result)
        return 0
    if given.list:
        for name, (rows, _, function) in SECTIONS.items():
            print(f"{name:<16} {rows:<15} {(function.__doc__ or '').splitlines()[0]}")
        return 0
    import torch

    card = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"
    results: dict[str, Any] = {
        "about": {
            "card": card,
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "python": platform.python_version(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        }
    }
    failed = 0
    for name in given.only or SECTIONS:
        found = {"rows": SECTIONS[name][0], **run_section(name)}
        results[name] = found
        state = found.get("skipped") or ("FAILED: " + found["error"][-300:] if "error" in found else "done")
        failed += "error" in found
        print(f"{name:<16} {state}", flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-")
    target = given.out / f"kit-{slug}-{datetime.date.today().isoformat()}.json"
    target.write_text(json.dumps(results, indent=1) + "\n")
    print(target)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs every program of the leak and benign suites under the verifier and checks it against its head, without
pytest.

    python tests/runtime/on_gpu.py [--device cuda] [--jobs 4] [--out FOLDER] [NAME …]

Writes one JSON file with every result into FOLDER. Exit code 1 if a program was judged wrongly.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE)]

from expectations import EACH, check, reason_to_skip  # noqa: E402
from starting import start  # noqa: E402

from gpulint.runtime.record.result import RunResult  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--out", default="")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    paths = [p for p in EACH if not arguments.names or any(n in p.stem for n in arguments.names)]

    def measure(path: Path) -> RunResult:
        return start(str(path), device=arguments.device, timeout=200.0)

    wrong = 0
    report = {}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for path, result in zip(paths, pool.map(measure, paths), strict=True):
            report[path.stem] = result.to_json()
            said = reason_to_skip(path)
            if said is None:
                try:
                    check(path, result, arguments.device)
                except AssertionError as error:
                    wrong += 1
                    said = f"WRONG  {error}\n    {result.end.message}\n{(result.stderr or '')[-1500:]}"
            print(f"{path.stem:32} {result.seconds:5.1f} s  {said or 'ok'}", flush=True)
    if arguments.out:
        os.makedirs(arguments.out, exist_ok=True)
        target = os.path.join(arguments.out, f"programs-{arguments.device}.json")
        with open(target, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
    print(f"{len(paths)} programs, {wrong} judged wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

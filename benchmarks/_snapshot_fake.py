"""Stands in for _snapshot_child.py where there is no GPU: the allocator's model plays torch. Its figures mean nothing."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests" / "snapshot")]

from torch_layout import Program, training  # noqa: E402

from gpulint.memory.alloc_conf import OLD  # noqa: E402


def main() -> None:
    workload, snapshot = sys.argv[1:3]
    entries = int(sys.argv[sys.argv.index("--entries") + 1]) if "--entries" in sys.argv else 1 << 60
    program = Program(os.environ.get(OLD, ""), entries=entries)
    if workload == "long":
        training(program, steps=400, depth=60)
    chance = random.Random(workload)
    for round_ in range(200):
        got = [
            program.malloc(chance.randrange(1, 40 << 20), ("/home/me/train.py", chance.randrange(9), "step"))
            for _ in range(10)
        ]
        for address in got[round_ % 20 == 0 :]:
            program.free(address)
    model = program.model
    print(json.dumps({"peak_allocated": model.peak_allocated, "peak_reserved": model.peak_reserved}))
    if snapshot != "-":
        program.dump(Path(snapshot))


if __name__ == "__main__":
    main()

"""Runs a list of allocations on the GPU: `python replaying.py SCENARIO.json RESULT.json`.

A script of its own, so that the interpreter that has torch need not have gpulint.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def replay(given: dict[str, Any]) -> dict[str, Any]:
    """The outcome and the allocator's figures. `limit` is in bytes; CUDA must be available."""
    import torch

    cuda = torch.cuda
    if given["limit"] is not None:
        total = cuda.get_device_properties(0).total_memory
        cuda.set_per_process_memory_fraction(min(1.0, given["limit"] / total), 0)
    tensors: dict[int, Any] = {}
    succeeded = True
    try:
        for action, name, size in given["events"]:
            if action == "alloc":
                tensors[name] = torch.empty(size, dtype=torch.uint8, device="cuda")
            else:
                del tensors[name]
    except torch.cuda.OutOfMemoryError:
        succeeded = False
    stats = cuda.memory_stats()
    snapshot = cuda.memory._snapshot()
    settings = snapshot.get("allocator_settings")
    free = [b["size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "inactive"]
    return {
        "succeeded": succeeded,
        "peak_allocated": stats["allocated_bytes.all.peak"],
        "peak_reserved": stats["reserved_bytes.all.peak"],
        "allocated": stats["allocated_bytes.all.current"],
        "reserved": stats["reserved_bytes.all.current"],
        "largest_free": max(free, default=0),
        "retries": stats["num_alloc_retries"],
        "read_back": None if settings is None else json.dumps({k: str(v) for k, v in settings.items()}),
    }


if __name__ == "__main__":
    with open(sys.argv[1]) as source:
        outcome = replay(json.load(source))
    with open(sys.argv[2], "w") as target:
        json.dump(outcome, target)

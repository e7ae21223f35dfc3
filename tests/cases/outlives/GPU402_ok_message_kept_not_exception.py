import json

import torch


def sweep(run, sizes, out):
    """Benchmarks a range of sizes and stops at the first that does not fit."""
    rows = []
    for n in sizes:
        try:
            ms = run(n)
        except torch.cuda.OutOfMemoryError as e:
            rows.append({"n": n, "ms": None, "error": str(e)})
            break
        rows.append({"n": n, "ms": ms, "error": None})
    with open(out, "w") as f:
        json.dump(rows, f)
    return rows

"""Runs data-parallel programs with and without a leak on one rank under torchrun, and checks which rank the verifier names.

    python benchmarks/several_gpus.py                       # NCCL, one process for each of two GPUs
    python benchmarks/several_gpus.py --device cpu          # two processes on the CPU, to try the script

Writes `benchmarks/results/ranks-<gpu>-<date>.json` and prints what was wrong. Exit status 1: a program was judged wrongly.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from _parts import Parts, run_parts

import gpulint

LAUNCH = ("--nproc-per-node", "2", "--standalone")
STEPS = 30  # of a leaking program that are sampled
KEPT = 64 * 1024  # bytes that a leaking rank keeps a step
BODY = """
import os
import torch
import torch.distributed as dist
from torch import nn
{imports}

rank = int(os.environ["LOCAL_RANK"])
if "{device}" == "cuda":
    torch.cuda.set_device(rank)
device = torch.device("{device}", rank) if "{device}" == "cuda" else torch.device("cpu")
dist.init_process_group("{backend}")
network = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).to(device)
model = {wrap}
optimizer = torch.optim.AdamW(model.parameters())
kept = []
for step in range(100_000):
    output = model(torch.randn(16, 1024, device=device))
    loss = output.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {leak}
"""
WRAPPERS = {
    "DDP": (
        "from torch.nn.parallel import DistributedDataParallel",
        'DistributedDataParallel(network, device_ids=[device] if device.type == "cuda" else None)',
    ),
    "FSDP": ("from torch.distributed.fsdp import fully_shard", "fully_shard(network)"),
}
LEAKS: dict[str, tuple[str, tuple[int, ...]]] = {
    "no rank": ("pass", ()),
    "rank 1": ("if rank == 1: kept.append(output.detach())", (1,)),
    "every rank": ("kept.append(output.detach())", (0, 1)),
}


def leaking(script: Path, device: str, name: str, expected: tuple[int, ...], parts: Parts) -> dict[str, Any]:
    """Sample the steps of one program in two processes: what grows, where, and what is wrong about it."""
    variables = {"OMP_NUM_THREADS": "1", **({} if device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""})}
    # No finding is judged: whatever grows is told as growth that none explains.
    result = gpulint.verify(
        script, findings=(), steps=STEPS, launch=LAUNCH, timeout=180.0, reach=0.0, environment=variables
    )
    run = result.run
    growing = [
        (one.ranks, one.device or one.host, one.text) for one in result.unpredicted if one.device or one.host
    ]
    wanted = [(expected, KEPT)] if expected else []
    found = [(ranks, size) for ranks, size, _ in growing]
    parts.want(run.end.reason == "stopped", f"{name}: {run.end.message} {(run.stderr or '')[-800:]}")
    parts.want(found == wanted, f"{name}: found {growing}, wanted {wanted}")
    for _, _, text in growing:
        parts.want("`kept`" in text, f"{name}: the holder is {text}")
    ranks = [
        {"rank": rank.rank, "device": rank.environment.device_name, "steps": rank.steps("train"), "notes": rank.notes}
        for rank in run.ranks
    ]  # fmt: skip
    return {"end": run.end.message, "seconds": round(run.seconds, 1), "growing": growing, "ranks": ranks}


def measure(device: str, parts: Parts) -> None:
    backend = "nccl" if device == "cuda" else "gloo"
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "parallel.py")
        for wrapper, (imports, wrap) in WRAPPERS.items():
            for leak, (statement, expected) in LEAKS.items():
                told = {"imports": imports, "wrap": wrap, "backend": backend, "device": device}
                script.write_text(BODY.format(leak=statement, **told))
                name = f"{wrapper}, leak on {leak}"
                parts.part(name, partial(leaking, script, device, name, expected, parts))


if __name__ == "__main__":
    sys.exit(run_parts("ranks", __doc__, measure))

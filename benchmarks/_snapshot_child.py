"""One process of snapshots.py: runs a workload on the GPU with its allocations recorded, dumps the snapshot, prints the figures.

    python _snapshot_child.py WORKLOAD SNAPSHOT|- [--entries N] [--stacks python|all] [--context none|alloc|all]

The allocator's settings are those of the environment. A workload does the same allocations in every run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def _language_model(width: int = 512, layers: int = 6) -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    return nn.Sequential(
        nn.Embedding(8000, width), nn.TransformerEncoder(layer, layers), nn.Linear(width, 8000)
    ).cuda()


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> None:
    scores = model(tokens)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1).float(), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def lengths(steps: int = 60) -> None:
    """Training on batches of varying length."""
    chance = random.Random(0)
    model = _language_model()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        length = chance.randrange(16, 512)
        _step(model, optimizer, torch.randint(8000, (16, length), device="cuda"))


def validation(rounds: int = 6) -> None:
    """Training on fixed batches, with validation on larger ones in between and the cache emptied after it."""
    model = _language_model()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(rounds):
        for _ in range(6):
            _step(model, optimizer, torch.randint(8000, (16, 256), device="cuda"))
        kept = []
        with torch.no_grad():
            for number in range(4):
                scores = model(torch.randint(8000, (48, 300 + 40 * number), device="cuda"))
                kept.append(scores.argmax(-1))
        del scores
        torch.cuda.empty_cache()


def fragmentation(rounds: int = 300) -> None:
    """A cache of tensors that grow by concatenation, with some of odd sizes that stay."""
    chance = random.Random(1)
    caches: list[torch.Tensor | None] = [None] * 24
    stay = []
    for number in range(rounds):
        slot = chance.randrange(len(caches))
        old = caches[slot]
        new = torch.empty(chance.randrange(1, 48) << 18, dtype=torch.float32, device="cuda")
        if old is None or old.numel() > 96 << 20:
            caches[slot] = new
        else:
            caches[slot] = torch.cat([old, new])
        del old, new
        if number % 10 == 0:
            stay.append(torch.empty(chance.randrange(1, 3 << 20), dtype=torch.uint8, device="cuda"))


def rollouts(rounds: int = 8) -> None:
    """Generation with a growing cache of keys and values, then a step of training: as reinforcement learning does."""
    chance = random.Random(2)
    model = _language_model(384, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(rounds):
        keys = [torch.empty(8, 8, 1, 64, device="cuda") for _ in range(24)]
        for _ in range(chance.randrange(60, 200)):
            keys = [torch.cat([one, torch.empty(8, 8, 7, 64, device="cuda")], dim=2) for one in keys]
        _step(model, optimizer, torch.randint(8000, (12, chance.randrange(64, 400)), device="cuda"))
        del keys


def streams(rounds: int = 120) -> None:
    """Batches copied on a side stream and used on the main one, with record_stream."""
    chance = random.Random(3)
    side = torch.cuda.Stream()
    for _ in range(rounds):
        host = torch.empty(chance.randrange(1 << 20, 24 << 20), dtype=torch.uint8).pin_memory()
        with torch.cuda.stream(side):
            batch = host.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        batch.record_stream(torch.cuda.current_stream())
        result = batch.float().mul_(2).sum()
        del batch
        float(result)


def small(steps: int = 3) -> None:
    """A few steps of a very small network."""
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for _ in range(steps):
        loss = model(torch.randn(512, 256, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss)
    small.kept = losses, model  # type: ignore[attr-defined]


def graphs() -> None:
    """A captured CUDA graph beside ordinary work: a private pool."""
    model = nn.Linear(1024, 1024).cuda()
    still = torch.randn(256, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model(still).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = model(still)
    for _ in range(3):
        graph.replay()
        model(torch.randn(128, 1024, device="cuda")).sum().backward()
    graphs.kept = graph, captured, model  # type: ignore[attr-defined]


def out_of_memory() -> None:
    """Fills what it may have, punches holes, and asks for too much."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((4 << 30) / total)
    held = [torch.empty(8 << 20, dtype=torch.uint8, device="cuda") for _ in range(380)]
    del held[::2]
    with contextlib.suppress(torch.cuda.OutOfMemoryError):
        torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    out_of_memory.kept = held  # type: ignore[attr-defined]


def long(seconds: float = 70.0) -> None:
    """Training for so long, and so deep in a program, that its trace makes more than a gigabyte."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(100, 64), nn.TransformerEncoder(layer, 12), nn.Linear(64, 100)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    chance = random.Random(4)
    end = time.monotonic() + seconds

    def below(depth: int) -> None:
        if depth:
            return below(depth - 1)
        _step(model, optimizer, torch.randint(100, (4, chance.randrange(8, 64)), device="cuda"))

    while time.monotonic() < end:
        below(120)


WORKLOADS: dict[str, Callable[[], None]] = {
    one.__name__: one
    for one in (lengths, validation, fragmentation, rollouts, streams, small, graphs, out_of_memory, long)
}


def figures() -> dict[str, Any]:
    stats = torch.cuda.memory_stats()
    return {
        "peak_allocated": stats["allocated_bytes.all.peak"],
        "peak_reserved": stats["reserved_bytes.all.peak"],
        "allocated": stats["allocated_bytes.all.current"],
        "reserved": stats["reserved_bytes.all.current"],
        "retries": stats["num_alloc_retries"],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("snapshot")
    parser.add_argument("--entries", type=int, default=50_000_000)
    parser.add_argument("--stacks", default="python")
    parser.add_argument("--context", default="all")
    given = parser.parse_args()
    began = time.monotonic()
    if given.snapshot != "-":
        torch.cuda.memory._record_memory_history(
            "all",
            context=None if given.context == "none" else given.context,
            stacks=given.stacks,
            max_entries=given.entries,
        )
    WORKLOADS[given.workload]()
    torch.cuda.synchronize()
    found = {**figures(), "seconds": round(time.monotonic() - began, 2), "torch": torch.__version__}
    if given.snapshot != "-":
        torch.cuda.memory._dump_snapshot(given.snapshot)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

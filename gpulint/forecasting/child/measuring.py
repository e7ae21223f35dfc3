"""Measures the constants of the card in this machine, as a program of its own: prints them as one line of JSON.

Runs in the user's interpreter and imports nothing of gpulint. What other processes hold on the card when it starts is taken off.
"""

from __future__ import annotations

import gc
import json
import subprocess
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def used_by_card() -> dict[str, int]:
    """Bytes in use on each card, by its UUID, before this process starts CUDA; empty where nvidia-smi cannot be asked."""
    command = ["nvidia-smi", "--query-gpu=uuid,memory.used", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        rows = [line.split(",") for line in done.stdout.splitlines() if line.strip()]
        return {uuid.strip().removeprefix("GPU-"): int(used) << 20 for uuid, used in rows}
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}


def kept(work: Callable[[], Any]) -> int:
    """Allocated bytes that stay after `work`, whose own results are gone."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    work()
    gc.collect()
    torch.cuda.synchronize()
    return int(torch.cuda.memory_allocated() - before)


def train(dtype: torch.dtype) -> None:
    """Some steps of what most programs load kernels for: convolutions, products, attention, losses, an optimizer."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 900, 256), nn.LayerNorm(256)
    ).cuda()  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        with torch.autocast("cuda", dtype=dtype, enabled=dtype is not torch.float32):
            hidden = model(torch.randn(16, 3, 32, 32).cuda()).view(16, 4, 8, 8)
            mixed = nn.functional.scaled_dot_product_attention(hidden, hidden, hidden)
            loss = nn.functional.cross_entropy(
                mixed.reshape(16, 256), torch.zeros(16, dtype=torch.long).cuda()
            )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()


def measured() -> dict[str, Any]:
    """The constants, in bytes."""
    before = used_by_card()
    properties = torch.cuda.get_device_properties(0)
    others = before.get(str(getattr(properties, "uuid", "")).removeprefix("GPU-"), 0)
    square = torch.ones(64, 64, device="cuda")
    cublas = kept(lambda: square @ square)
    layer, half = nn.Linear(64, 64).cuda(), square
    cublaslt = kept(lambda: layer(half).sum().item())
    for dtype in (torch.float32, torch.bfloat16):
        train(dtype)
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return {
        "label": properties.name,
        "memory": total,
        "capability": [properties.major, properties.minor],
        "processors": properties.multi_processor_count,
        "context": total - free - torch.cuda.memory_reserved() - others,
        "cublas_workspace": cublas,
        "cublaslt_workspace": cublaslt,
        "torch": torch.__version__,
        "others": others,
    }


if __name__ == "__main__":
    if not torch.cuda.is_available():
        raise SystemExit("torch finds no CUDA device")
    print(json.dumps(measured()))

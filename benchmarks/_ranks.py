"""The data-parallel programs of several_gpus.py: what they begin with, and how they are launched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LAUNCH = ("--nproc-per-node", "2", "--standalone")
HEAD = """
import json, os, sys, time
import torch
import torch.distributed as dist
from torch import nn
{imports}

local = rank = int(os.environ["LOCAL_RANK"])
if os.environ.get("FOREIGN") and "{device}" == "cuda":
    torch.ones(1, device="cuda")  # before set_device: on card 0, whichever rank this is
if "{device}" == "cuda":
    torch.cuda.set_device(local)
device = torch.device("{device}", local) if "{device}" == "cuda" else torch.device("cpu")


def parallel(width=4096):
    if not dist.is_initialized():
        dist.init_process_group("{backend}")
    network = nn.Sequential(nn.Linear(1024, width), nn.ReLU(), nn.Linear(width, 1024)).to(device)
    return {wrap}
"""
WRAPPERS = {
    "DDP": (
        "from torch.nn.parallel import DistributedDataParallel",
        'DistributedDataParallel(network, device_ids=[device] if device.type == "cuda" else None)',
    ),
    "FSDP": ("from torch.distributed.fsdp import fully_shard", "fully_shard(network)"),
}


@dataclass(frozen=True)
class Program:
    """Programs under one wrapper, with NCCL on GPUs or with gloo on the CPU."""

    wrapper: str
    backend: str

    @property
    def device(self) -> str:
        return "cuda" if self.backend == "nccl" else "cpu"

    def write(self, folder: Path, name: str, body: str, **more: object) -> str:
        """Write a program into `folder` and give its name."""
        imports, wrap = WRAPPERS[self.wrapper]
        told = {"imports": imports, "wrap": wrap, "backend": self.backend, "device": self.device, **more}
        (folder / name).write_text((HEAD + body).format(**told))
        return name

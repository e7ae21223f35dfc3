"""What the sections of kit_gpu.py share: their register, Python in a process of its own, and a small model on the device."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
MIB = 1024**2
STEPS = 200
SECTIONS: dict[str, tuple[str, bool, Callable[[], dict[str, Any]]]] = {}


def section(
    rows: str, cuda: bool = True
) -> Callable[[Callable[[], dict[str, Any]]], Callable[[], dict[str, Any]]]:
    """Register a section for these helpers; `cuda` says that it needs a device."""

    def register(function: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        SECTIONS[function.__name__] = (rows, cuda, function)
        return function

    return register


def python(*words: str | Path, limit: float = 200.0, **variables: str) -> subprocess.CompletedProcess[str]:
    """This interpreter with these arguments and variables and gpulint importable; what it printed is kept."""
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit)


def program(*words: str) -> subprocess.Popen[str]:
    """This interpreter with these arguments, once it has printed a line."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def allocated() -> int:
    return torch.cuda.memory_allocated()


def trained(width: int = 2048, layers: int = 8) -> tuple[Any, Any, Any]:
    """A model, its Adam after one step, and a batch."""
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers))).to(device())
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(256, width, device=device())
    model(batch).square().mean().backward()
    optimizer.step()
    return model, optimizer, batch

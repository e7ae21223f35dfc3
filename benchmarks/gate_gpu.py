"""Holds two training scripts against limits on a GPU: what is written, compared, found grown, and refused.

    python benchmarks/gate_gpu.py                                  # one card, three minutes
    python benchmarks/gate_gpu.py --device cpu --out gate.json     # to try the script

Each part is recorded with its error where it fails; the others go on. Beside gpulint's figures stand those that the same script reads
itself, without gpulint, from `torch.cuda.max_memory_allocated`. Exit status 1: something was not as it should be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from _parts import Parts, environment, printed, python, run_parts, verified

from gpulint.operator import gpu

STEPS, WARMUP = 12, 4
LIMIT = 150.0  # seconds for one command
HEAD = """
import json, os, sys
import torch
from torch import nn
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
wide = int(os.environ.get("WIDE", "0"))
plain = int(os.environ.get("PLAIN", "0"))
torch.manual_seed(0)
"""
LOOP = """
start = 0
for step in range(plain or 100_000):
    if plain and step == {warmup} and device.type == "cuda":
        torch.cuda.synchronize()
        start = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
    train()
if plain and device.type == "cuda":
    torch.cuda.synchronize()
    steps = torch.cuda.max_memory_allocated()
    print(json.dumps({{"start": start, "steps": steps, "reserved": torch.cuda.max_memory_reserved()}}))
"""
SCRIPTS = {
    "transformer": HEAD
    + """
small = device.type == "cpu"
layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
model = nn.TransformerEncoder(layer, 4).to(device)
optimizer = torch.optim.AdamW(model.parameters())

def train():
    batch = torch.randn(1 if small else 16, 128, 256, device=device)
    hidden = model(batch)
    if wide:
        hidden = torch.cat([hidden] * wide, dim=-1)
    loss = hidden.float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    + LOOP,
    "convolution": HEAD
    + """
blocks = [nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()) for _ in range(6)]
model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
model = model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
kept = []

def train():
    images = torch.randn(16 if device.type == "cuda" else 1, 3, 48, 48, device=device)
    if wide:
        images = images.repeat(2, 1, 1, 1)
    loss = model(images).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    + LOOP,
}
HOLDER = "import sys, torch\nx = torch.ones(1 << 26, device='cuda')\nprint('there', flush=True)\nsys.stdin.read()\n"


@dataclass
class Bench(Parts):
    """The parts, and how a script is run in one of them."""

    device: str = "cuda"
    folder: Path = Path()

    def python(self, script: Path, **variables: str) -> dict[str, Any]:
        """The script without gpulint: the last line that it prints."""
        env = environment(self.device, **variables)
        told = printed(python(script, folder=self.folder, env=env, limit=LIMIT)).splitlines()
        found: dict[str, Any] = json.loads(told[-1]) if told else {}
        return found

    def verify(self, script: Path, *options: str, **variables: str) -> dict[str, Any]:
        steps = ("--steps", str(STEPS), "--warmup", str(WARMUP), "--select", "GPU101")
        return verified(self.device, self.folder, *steps, *options, script.name, limit=LIMIT, **variables)

    def ended(self, status: int, what: str, script: Path, *options: str, **variables: str) -> dict[str, Any]:
        """What is verified, which must end with this status."""
        found = self.verify(script, *options, **variables)
        self.want(found["status"] == status, f"{what} ended with {found['status']}")
        return found


def one_script(bench: Bench, name: str) -> None:
    """Write, compare, grow, limit."""
    script = bench.folder / f"{name}.py"
    script.write_text(SCRIPTS[name].replace(LOOP, LOOP.format(warmup=WARMUP)), encoding="utf-8")
    base = ("--baseline", "memory.json")

    plain = partial(bench.python, script, PLAIN=str(WARMUP + STEPS))

    def write_down() -> Any:
        found = bench.ended(0, f"{name}: writing the baseline", script, *base, "--write-baseline")
        (peak,) = found["gate"]["ranks"]
        reached, read = peak["allocated"], bench.record[f"{name}: plain"].get("steps", peak["allocated"])
        said = f"{name}: the sampled steps reach {reached}, by the script's own reading {read}"
        bench.want(reached == read, said)
        return found

    compare = partial(bench.ended, 0, f"{name}: the same script again", script, *base, "--tolerance", "0")

    def grown() -> Any:
        found = bench.ended(1, f"{name}: growth", script, *base, WIDE="4")
        grew = any(c["lines"] and c["lines"][0]["grew"] for c in found["gate"]["checks"])
        bench.want(grew, f"{name}: no line that grew")
        return found

    def limit() -> Any:
        (peak,) = bench.record[f"{name}: write"]["gate"]["ranks"]
        below = bench.verify(script, "--max-peak", str(peak["run"] - 1))
        exact = bench.verify(script, "--max-peak", str(peak["run"]))
        bench.want((below["status"], exact["status"]) == (1, 0), f"{name}: --max-peak is not exact")
        return {"below": below, "exact": exact}

    parts: dict[str, Callable[[], Any]] = {
        "plain": plain,
        "write": write_down,
        "compare": compare,
        "grown": grown,
        "limit": limit,
    }
    parts["unlimited"] = partial(bench.ended, 0, f"{name}: without limits it", script)
    for what, do in parts.items():
        if what != "limit" or name == "transformer":
            bench.part(f"{name}: {what}", do)


def cards(bench: Bench) -> None:
    """Alone, and beside another process."""
    script = bench.folder / "transformer.py"

    def driver() -> Any:
        seen, problem = gpu.look()
        others = gpu.others(seen, os.environ)
        return {
            "cards": [[card.index, card.uuid, card.name, card.used] for card in seen],
            "tenants": [[card.uuid, one.pid, one.bytes] for card in seen for one in card.tenants],
            "problem": problem,
            "others": [one.to_json() for one in others],
        }

    def alone() -> Any:
        return bench.ended(0, "--exclusive alone", script, "--exclusive", "--max-peak", "100GiB")

    def shared() -> Any:
        other = subprocess.Popen(
            [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert other.stdout is not None
            other.stdout.readline()
            beside = driver()
            refused = bench.ended(
                2, "--exclusive beside another", script, "--exclusive", "--max-peak", "100GiB"
            )
            told = bench.verify(script, "--max-peak", "100GiB")
        finally:
            other.kill()
            other.wait()
        bench.want(bool(told["gate"]["neighbours"]), "the other process was not told of")
        return {"driver": beside, "refused": refused, "told": told}

    bench.part("driver", driver)
    bench.part("alone", alone)
    bench.part("shared", shared)


def measure(device: str, parts: Parts) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(**vars(parts), device=device, folder=Path(folder))
        for name in SCRIPTS:
            one_script(bench, name)
        if device == "cuda":
            cards(bench)
            bench.device = "cpu"
            script = bench.folder / "transformer.py"
            bench.part("the same on the CPU", lambda: bench.verify(script, "--max-peak", "100GiB"))
        baseline = bench.folder / "memory.json"
        bench.part("baseline", lambda: json.loads(baseline.read_text()))


if __name__ == "__main__":
    sys.exit(run_parts("limits", __doc__, measure))

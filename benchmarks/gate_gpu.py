"""Holds two training scripts against limits on a GPU: what is written, compared, found grown, and refused.

    python benchmarks/gate_gpu.py --out gate.json                  # one card, three minutes
    python benchmarks/gate_gpu.py --device cpu --out gate.json     # to try the script

Each part is recorded with its error where it fails; the others go on. Beside gpulint's figures stand those that the same script reads
itself, without gpulint, from `torch.cuda.max_memory_allocated`. Exit status 1: something was not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _measure import hardware  # noqa: E402

from gpulint.operator import gpu  # noqa: E402

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
class Bench:
    """What was done so far. `record` is the data, `problems` what was not as it should be."""

    device: str
    folder: Path
    record: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def part(self, name: str, do: Callable[[], Any]) -> None:
        """Do one part; its error is data too."""
        begin = time.monotonic()
        try:
            self.record[name] = do()
        except Exception as error:
            self.record[name] = {"error": f"{type(error).__name__}: {error}"}
            self.problems.append(f"{name}: {error}")
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)

    def want(self, holds: bool, what: str) -> None:
        if not holds:
            self.problems.append(what)

    def python(self, script: Path, **environment: str) -> dict[str, Any]:
        """The script without gpulint: the last line that it prints."""
        done = subprocess.run(
            [sys.executable, str(script)],
            cwd=self.folder,
            env=self._environment(environment),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-500:])
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
        return found

    def verify(self, script: Path, *options: str, **environment: str) -> dict[str, Any]:
        """`gpulint verify` with its exit status and the parts of its JSON that are about limits."""
        command = [sys.executable, "-m", "gpulint", "verify", "-q", "--output-format", "json"]
        command += ["--steps", str(STEPS), "--warmup", str(WARMUP), "--reach", "0", "--select", "GPU101"]
        command += [*options, *(["--device", "cpu"] if self.device == "cpu" else []), script.name]
        begin = time.monotonic()
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment(environment),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        found: dict[str, Any] = {
            "status": done.returncode,
            "wall": round(time.monotonic() - begin, 2),
            "said": done.stderr[-600:],
        }
        if done.stdout.startswith("{"):
            data = json.loads(done.stdout)
            ranks = data["run"]["ranks"]
            durations = sorted(s["duration"] for r in ranks for s in r["samples"] if s["sampled"])
            found |= {
                "gate": data["gate"],
                "drift": data["drift"],
                "end": data["run"]["end"]["message"],
                "step": durations[len(durations) // 2] if durations else None,
                "peaks": [
                    {k: p[k] for k in ("stretch", "allocated", "traced", "reserved")}
                    for r in ranks
                    for p in r["peaks"]
                ],
                "cards": [r["cards"] for r in ranks],
                "notes": [note for r in ranks for note in r["notes"]],
            }
        return found

    def _environment(self, more: dict[str, str]) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self.device == "cpu" else {}
        return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **hidden, **more}


def one_script(bench: Bench, name: str) -> None:
    """Write, compare, grow, limit."""
    script = bench.folder / f"{name}.py"
    script.write_text(SCRIPTS[name].replace(LOOP, LOOP.format(warmup=WARMUP)), encoding="utf-8")
    base = ("--baseline", "memory.json")

    def plain() -> Any:
        return bench.python(script, PLAIN=str(WARMUP + STEPS))

    def write() -> Any:
        found = bench.verify(script, *base, "--write-baseline")
        bench.want(found["status"] == 0, f"{name}: writing the baseline ended with {found['status']}")
        (peak,) = found["gate"]["ranks"]
        own = bench.record[f"{name}: plain"]
        if own:
            bench.want(
                peak["allocated"] == own["steps"],
                f"{name}: the sampled steps reach {peak['allocated']}, by the script's own reading {own['steps']}",
            )
        return found

    def compare() -> Any:
        found = bench.verify(script, *base, "--tolerance", "0")
        bench.want(found["status"] == 0, f"{name}: the same script again ended with {found['status']}")
        return found

    def grown() -> Any:
        found = bench.verify(script, *base, WIDE="4")
        bench.want(found["status"] == 1, f"{name}: growth ended with {found['status']}")
        bench.want(
            any(c["lines"] and c["lines"][0]["grew"] for c in found["gate"]["checks"]),
            f"{name}: no line that grew",
        )
        return found

    def limit() -> Any:
        (peak,) = bench.record[f"{name}: write"]["gate"]["ranks"]
        below = bench.verify(script, "--max-peak", str(peak["run"] - 1))
        exact = bench.verify(script, "--max-peak", str(peak["run"]))
        bench.want((below["status"], exact["status"]) == (1, 0), f"{name}: --max-peak is not exact")
        return {"below": below, "exact": exact}

    def unlimited() -> Any:
        found = bench.verify(script)
        bench.want(found["status"] == 0, f"{name}: without limits it ended with {found['status']}")
        return found

    parts = {
        "plain": plain,
        "write": write,
        "compare": compare,
        "grown": grown,
        "limit": limit,
        "unlimited": unlimited,
    }
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
        found = bench.verify(script, "--exclusive", "--max-peak", "100GiB")
        bench.want(found["status"] == 0, f"--exclusive alone ended with {found['status']}")
        return found

    def shared() -> Any:
        other = subprocess.Popen(
            [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert other.stdout is not None
            other.stdout.readline()
            beside = driver()
            refused = bench.verify(script, "--exclusive", "--max-peak", "100GiB")
            told = bench.verify(script, "--max-peak", "100GiB")
        finally:
            other.kill()
            other.wait()
        bench.want(refused["status"] == 2, f"--exclusive beside another ended with {refused['status']}")
        bench.want(bool(told["gate"]["neighbours"]), "the other process was not told of")
        return {"driver": beside, "refused": refused, "told": told}

    bench.part("driver", driver)
    bench.part("alone", alone)
    bench.part("shared", shared)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, default=Path("gate.json"))
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given.device, Path(folder))
        bench.part("hardware", hardware)
        for name in SCRIPTS:
            one_script(bench, name)
        if given.device == "cuda":
            cards(bench)
            bench.device = "cpu"
            script = bench.folder / "transformer.py"
            bench.part("the same on the CPU", lambda: bench.verify(script, "--max-peak", "100GiB"))
        baseline = bench.folder / "memory.json"
        bench.record["baseline"] = json.loads(baseline.read_text()) if baseline.exists() else None
    bench.record["problems"] = bench.problems
    given.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(bench.record, indent=1, default=str).replace(f"{bench.folder}/", "")
    given.out.write_text(text.replace(sys.executable, "python") + "\n", encoding="utf-8")
    print("\n".join(bench.problems) or "all as it should be")
    return 1 if bench.problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""What the verifier costs: the same training loop without it and under it, median time of a step.

    python benchmarks/overhead.py [--device auto] [--repeat 3] [--out FILE.json]

On CUDA the loop is a transformer whose step takes about 20 ms, on the CPU an MLP of a few milliseconds. Each
run is a process of its own; plain and watched runs alternate.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gpulint.runtime.runner import Run, run

WORKLOAD = """
import sys, time, torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
layers, steps = int(sys.argv[1]), int(sys.argv[2])
if device == "cuda":
    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    model = nn.Sequential(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Linear(512, 64)).to(device)
    shape = (16, 256, 512)
else:
    parts = [part for _ in range(layers) for part in (nn.Linear(256, 256), nn.ReLU())]
    model = nn.Sequential(*parts, nn.Linear(256, 64)).to(device)
    shape = (128, 256)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(steps):
    begin = time.perf_counter()
    out = model(torch.randn(shape, device=device))
    loss = out.float().pow(2).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if device == "cuda":
        torch.cuda.synchronize()
    print(time.perf_counter() - begin, flush=True)
"""
WARMUP, STEPS = 8, 40


def plain(script: str, layers: int, steps: int) -> float:
    """Median seconds per step without the verifier."""
    command = [sys.executable, script, str(layers), str(steps)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return statistics.median([float(line) for line in output.split()][WARMUP:])


def watched(script: str, layers: int, device: str) -> float:
    """Median seconds per step under the verifier, as the script itself measures them."""
    arguments = (str(layers), str(WARMUP + STEPS + 20))
    result = run(
        Run(script, arguments, steps=STEPS, warmup=WARMUP, device=device, capture=True, timeout=300.0)
    )
    if result.end.reason != "stopped" or result.stdout is None:
        raise RuntimeError(f"{result.end.message}\n{result.stderr}")
    return statistics.median([float(line) for line in result.stdout.split()][WARMUP:])


def total(script: str, layers: int, device: str) -> tuple[float, float]:
    """Seconds of the sampled steps in sum, without and with everything that the verifier does between
    steps."""
    arguments = (str(layers), str(WARMUP + STEPS + 20))
    result = run(
        Run(script, arguments, steps=STEPS, warmup=WARMUP, device=device, capture=True, timeout=300.0)
    )
    samples = [sample for sample in result.ranks[0].samples if sample.sampled]
    own = [float(line) for line in (result.stdout or "").split()][WARMUP : WARMUP + len(samples)]
    return sum(own), sum(sample.duration for sample in samples)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto", choices=["auto", "cuda", "cpu"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = str(Path(folder) / "train.py")
        Path(script).write_text(WORKLOAD)
        layers = 4
        while (took := plain(script, layers, 20)) < (
            0.018 if options.device != "cpu" else 0.004
        ) and layers < 64:
            layers *= 2
        pairs = [
            (plain(script, layers, WARMUP + STEPS), watched(script, layers, options.device))
            for _ in range(options.repeat)
        ]
        sums = total(script, layers, options.device)
    without, under = statistics.median(p for p, _ in pairs), statistics.median(w for _, w in pairs)
    report = {
        "layers": layers,
        "step_ms": 1000 * without,
        "watched_step_ms": 1000 * under,
        "ratio": under / without,
        "pairs_ms": [[1000 * p, 1000 * w] for p, w in pairs],
        "sampled_steps_s": sums[0],
        "sampled_steps_with_marks_s": sums[1],
        "calibration_ms": 1000 * took,
    }
    print(json.dumps(report, indent=1))
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

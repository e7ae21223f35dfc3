"""Data-parallel programs held against limits: per-rank peaks and baselines, growth on one rank, contexts on foreign cards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STEPS, WARMUP = 8, 4
LIMIT = 170.0  # seconds for one command
GROWN = 8 * 1024 * 1024  # bytes that the planted line adds on rank 1
LAUNCH = ("--nproc-per-node", "2", "--standalone")
PROGRAM = """
import json, os
import torch
import torch.distributed as dist
from torch import nn
{imports}

local = int(os.environ["LOCAL_RANK"])
if os.environ.get("FOREIGN") and "{device}" == "cuda":
    torch.ones(1, device="cuda")  # before set_device: on card 0, whichever rank this is
if "{device}" == "cuda":
    torch.cuda.set_device(local)
dist.init_process_group("{backend}")
rank = dist.get_rank()
device = torch.device("{device}", local) if "{device}" == "cuda" else torch.device("cpu")
network = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).to(device)
model = {wrap}
optimizer = torch.optim.AdamW(model.parameters())
grow, plain = os.environ.get("GROW"), int(os.environ.get("PLAIN", "0"))
start = 0
for step in range(plain or 100_000):
    if plain and step == {warmup} and device.type == "cuda":
        torch.cuda.synchronize()
        start = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
    batch = torch.randn(64, 1024, device=device)
    output = model(batch)
    if grow and rank == 1:
        extra = torch.zeros(2 * 1024 * 1024, device=device)
    loss = output.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if plain:
    torch.cuda.synchronize() if device.type == "cuda" else None
    found = {{"rank": rank, "start": start}}
    if device.type == "cuda":
        found |= {{"steps": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}}
        found["contexts"] = [torch._C._cuda_hasPrimaryContext(i) for i in range(torch.cuda.device_count())]
    print(json.dumps(found), flush=True)
dist.destroy_process_group()
"""


@dataclass
class LimitedRanks:
    """The parts of one wrapper. `record` is the data, `problems` what was not as it should be."""

    wrapper: str
    device: str
    folder: Path
    foreign: bool  # whether a foreign context is planted; otherwise the program is compared as it is
    record: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def run(self, imports: str, wrap: str, backend: str, save: Callable[[], None]) -> None:
        """All parts; one that fails is data too. `save` is called after each."""
        script = self.folder / f"{self.wrapper.lower()}.py"
        script.write_text(
            PROGRAM.format(imports=imports, wrap=wrap, backend=backend, device=self.device, warmup=WARMUP)
        )
        parts: dict[str, Callable[[Path], Any]] = {
            "plain": self._plain,
            "write": self._write,
            "grown": self._grown,
            # A context changes no peak: with one the baseline is compared as well.
            **({"foreign": self._foreign} if self.foreign else {"compare": self._compare}),
        }
        for name, part in parts.items():
            begin = time.monotonic()
            try:
                self.record[name] = part(script)
            except Exception as error:
                self.record[name] = {"error": f"{type(error).__name__}: {error}"}
                self._wrong(f"{name}: {type(error).__name__}: {error}")
            save()
            print(f"{self.wrapper}, {name}: {time.monotonic() - begin:.1f} s", flush=True)

    def _wrong(self, what: str) -> None:
        self.problems.append(f"{self.wrapper}, {what}")

    def _plain(self, script: Path) -> Any:
        """The program's own readings, rank by rank, without gpulint."""
        command = [sys.executable, "-m", "torch.distributed.run", *LAUNCH, script.name]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment(PLAIN=str(STEPS + WARMUP)),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-800:])
        return sorted(
            (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")),
            key=lambda one: one["rank"],
        )

    def _write(self, script: Path) -> Any:
        found = self._verify(script, "--write-baseline")
        if found["status"]:
            self._wrong(f"write: status {found['status']}: {found['said']}")
        for own, peak in zip(self.record["plain"], found["gate"]["ranks"], strict=True):
            if "steps" in own and own["steps"] != peak["allocated"]:
                self._wrong(
                    f"rank {own['rank']} reaches {peak['allocated']}, by its own reading {own['steps']}"
                )
        return found

    def _compare(self, script: Path) -> Any:
        found = self._verify(script)
        if found["status"]:
            self._wrong(f"compare: status {found['status']}")
        if found["foreign"]:
            self._wrong(f"compare: {found['foreign']}")
        return found

    def _grown(self, script: Path) -> Any:
        found = self._verify(script, GROW="1")
        if found["foreign"]:
            self._wrong(f"grown: {found['foreign']}")
        exceeded = [c for c in found["gate"]["checks"] if c["status"] == "exceeded"]
        first = next((c for c in exceeded if c["stretch"] == "steps"), None)
        if found["status"] != 1 or first is None or first["rank"] != 1:
            self._wrong(
                f"grown: status {found['status']}, exceeded {[(c['rank'], c['stretch']) for c in exceeded]}"
            )
        elif "extra" not in first["lines"][0]["code"] or first["lines"][0]["grew"] != GROWN:
            self._wrong(f"grown: names {first['lines'][:1]}")
        return found

    def _foreign(self, script: Path) -> Any:
        if self.device != "cuda":
            return None
        found = self._verify(script, FOREIGN="1")
        if found["status"] or [(one["rank"], one["card"]) for one in found["foreign"]] != [(1, 0)]:
            self._wrong(f"foreign: status {found['status']}, found {found['foreign']}")
        return found

    def _verify(self, script: Path, *options: str, **environment: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "gpulint", "verify", "-q", "--output-format", "json", *LAUNCH]
        command += [
            "--steps",
            str(STEPS),
            "--warmup",
            str(WARMUP),
            "--reach",
            "0",
            "--baseline",
            "ranks.json",
        ]
        command += [*options, *(["--device", "cpu"] if self.device == "cpu" else []), script.name]
        begin = time.monotonic()
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment(**environment),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        found: dict[str, Any] = {"status": done.returncode, "wall": round(time.monotonic() - begin, 2)}
        found["said"] = done.stderr[-800:]
        data = json.loads(done.stdout)
        ranks = data["run"]["ranks"]
        return found | {
            "gate": data["gate"],
            "foreign": data["foreign"],
            "drift": data["drift"],
            "end": data["run"]["end"]["message"],
            "cards": [[rank["pid"], rank["cards"]] for rank in ranks],
            "peaks": [
                [
                    rank["rank"],
                    *(
                        {k: p[k] for k in ("stretch", "allocated", "traced", "reserved")}
                        for p in rank["peaks"]
                    ),
                ]
                for rank in ranks
            ],
        }

    def _environment(self, **more: str) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self.device == "cpu" else {}
        return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **hidden, **more}

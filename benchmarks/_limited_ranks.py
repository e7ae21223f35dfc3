"""Data-parallel programs held against limits: per-rank peaks and baselines, growth on one rank, contexts on foreign cards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _parts import Parts, environment, printed, python, verified
from _ranks import LAUNCH, Program

STEPS, WARMUP = 8, 4
LIMIT = 170.0  # seconds for one command
GROWN = 8 * 1024 * 1024  # bytes that the planted line adds on rank 1
BODY = """
grow, plain = os.environ.get("GROW"), int(os.environ.get("PLAIN", "0"))
model, start = parallel(), 0
optimizer = torch.optim.AdamW(model.parameters())
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
    """The parts of one wrapper, whose script is run in `folder`."""

    parts: Parts
    device: str
    folder: Path
    script: str

    def _plain(self) -> Any:
        """The program's own readings, rank by rank, without gpulint."""
        env = environment(self.device, PLAIN=str(STEPS + WARMUP))
        launched = ("-m", "torch.distributed.run", *LAUNCH, self.script)
        told = printed(python(*launched, folder=self.folder, env=env, limit=LIMIT))
        found = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
        return sorted(found, key=lambda one: one["rank"])

    def _write(self) -> Any:
        found = self._verify("--write-baseline")
        self.parts.want(not found["status"], f"write: status {found['status']}: {found['said']}")
        for own, peak in zip(self.parts.record["plain"], found["gate"]["ranks"], strict=True):
            reached, read = peak["allocated"], own.get("steps", peak["allocated"])
            self.parts.want(
                read == reached, f"rank {own['rank']} reaches {reached}, by its own reading {read}"
            )
        return found

    def _compare(self) -> Any:
        """The same again. A context changes no peak: with a foreign one the baseline is compared as well."""
        found = self._verify()
        self.parts.want(not found["status"], f"compare: status {found['status']}")
        self.parts.want(not found["foreign"], f"compare: {found['foreign']}")
        return found

    def _grown(self) -> Any:
        found = self._verify(GROW="1")
        self.parts.want(not found["foreign"], f"grown: {found['foreign']}")
        exceeded = [check for check in found["gate"]["checks"] if check["status"] == "exceeded"]
        places = [(check["rank"], check["stretch"]) for check in exceeded]
        first = next((check for check in exceeded if check["stretch"] == "steps"), None)
        if found["status"] != 1 or first is None or first["rank"] != 1:
            self.parts.want(False, f"grown: status {found['status']}, exceeded {places}")
        elif "extra" not in first["lines"][0]["code"] or first["lines"][0]["grew"] != GROWN:
            self.parts.want(False, f"grown: names {first['lines'][:1]}")
        return found

    def _foreign(self) -> Any:
        if self.device != "cuda":
            return None
        found = self._verify(FOREIGN="1")
        places = [(one["rank"], one["card"]) for one in found["foreign"]]
        right = not found["status"] and places == [(1, 0)]
        self.parts.want(right, f"foreign: status {found['status']}, found {found['foreign']}")
        return found

    def _verify(self, *options: str, **variables: str) -> dict[str, Any]:
        given = (*LAUNCH, "--steps", str(STEPS), "--warmup", str(WARMUP), "--baseline", "ranks.json")
        return verified(self.device, self.folder, *given, *options, self.script, limit=LIMIT, **variables)


def limits(program: Program, folder: Path, parts: Parts) -> None:
    """All parts of one wrapper. Under DDP a foreign context is planted, else the program is compared as it is."""
    script = program.write(folder, f"{program.wrapper.lower()}.py", BODY.replace("{warmup}", str(WARMUP)))
    ranks = LimitedRanks(parts, program.device, folder, script)
    last: Callable[[], Any] = ranks._foreign if program.wrapper == "DDP" else ranks._compare
    for part in (ranks._plain, ranks._write, ranks._grown, last):
        parts.part(part.__name__.strip("_"), part)

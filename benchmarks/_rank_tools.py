"""Snapshots, the pytest plugin and the account of a process under torchrun: each rank has its own, and they agree with torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _parts import Parts, environment, gpulint, python
from _ranks import LAUNCH, Program

LIMIT = 120.0  # seconds for one command
UNSPLIT = 0.02  # of the peak: by so much a trace's may differ from torch's
TOLERANCE = "20"  # percent: under DDP a cuBLAS workspace of 32 MiB is there in one run and not in the next
TRAIN = """

def train(model, steps):
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        loss = model(torch.randn(64, 1024, device=device)).pow(2).mean()
        if os.environ.get("GROW") and local == 1:
            extra = torch.zeros(32 * 1024 * 1024, device=device)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SCRIPT = """
train(parallel(), 100_000)
"""
SUITE = """
import pytest


@pytest.fixture(scope="session", autouse=True)
def group():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.gpu_memory()
def test_training():
    train(parallel(), 12)
"""
WAITING = """
import gpulint

train(parallel(), 4)
if device.type == "cuda":
    torch.cuda.synchronize()
told = gpulint.memory.account()
reserved = torch.cuda.memory_reserved() if device.type == "cuda" else 0
mine = {{"rank": dist.get_rank(), "pid": os.getpid(), "reserved": reserved, "account": told.to_json()}}
print(json.dumps(mine), flush=True)
until = time.monotonic() + 60
while not os.path.exists("enough") and time.monotonic() < until:
    time.sleep(0.1)
dist.destroy_process_group()
"""


@dataclass
class RankTools:
    """The parts of one wrapper."""

    program: Program
    folder: Path
    parts: Parts

    def snapshot(self) -> Any:
        """`verify --snapshot` writes a file for each rank, whose peak is what torch says of that rank."""
        if self.program.device != "cuda":
            return None
        script = self._write("script.py", SCRIPT)
        verify = ["verify", "-q", "--output-format", "json", *LAUNCH, "--steps", "8", "--reach", "0"]
        data = json.loads(self._gpulint(*verify, "--snapshot", "run.pickle", script, expected=(0, 1)))
        of_rank = {
            rank["rank"]: max(peak["allocated"] for peak in rank["peaks"]) for rank in data["run"]["ranks"]
        }
        found: dict[str, Any] = {"torch": of_rank, "snapshots": {}}
        what_if = ("--output-format", "json", "--what-if", "expandable_segments:True")
        for rank, allocated in of_rank.items():
            told = json.loads(self._gpulint("snapshot", f"run-rank{rank}.pickle", *what_if))
            found["snapshots"][rank] = told
            usages = [device["usage"] for one in told["snapshots"] for device in one["devices"]]
            peaks = [usage["peak_allocated"] for usage in usages if usage["peak_allocated"]]
            # What is not split off a large block is in torch's figure and in no trace.
            near = len(peaks) == 1 and abs(peaks[0] - allocated) <= UNSPLIT * allocated
            self.parts.want(near, f"snapshot of rank {rank}: peaks {peaks}, torch says {allocated}")
        return found

    def plugin(self) -> Any:
        """A suite under torchrun: an entry for each rank, held against, growth of one rank told by that rank alone."""
        suite = self._write("test_parallel.py", SUITE)
        given = (suite, "--gpu-memory-baseline", "memory.json", "--gpu-memory-tolerance", TOLERANCE)
        written, same = self._pytest(*given, "--gpu-memory-write-baseline"), self._pytest(*given)
        grown = self._pytest(*given, GROW="1")
        file = json.loads((self.folder / "memory.json").read_text())
        entries = sorted((one["rank"], one["world_size"]) for one in file["peaks"])
        statuses = (written.returncode, same.returncode)
        once = grown.stdout.count("gpu_memory: the peak of this test grew") == 1
        self.parts.want(entries == [(0, 2), (1, 2)], f"plugin: entries {entries}")
        self.parts.want(statuses == (0, 0), f"plugin: status {statuses}")
        self.parts.want(once, "plugin: growth of rank 1 is not told once")
        texts = {"written": written, "same": same, "grown": grown}
        return {"file": file, **{name: one.stdout[-3000:] for name, one in texts.items()}}

    def account(self) -> Any:
        """What each rank says of itself adds up to what it reserved, and the command says the same from outside."""
        command = [sys.executable, "-m", "torch.distributed.run", *LAUNCH, "-m", "gpulint", "run"]
        command += [sys.executable, self._write("waiting.py", WAITING)]
        own: dict[int, Any] = {}
        with subprocess.Popen(
            command, cwd=self.folder, env=environment(self.program.device), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as ranks:  # fmt: skip
            assert ranks.stdout is not None
            for line in ranks.stdout:
                if line.startswith("{"):
                    told = json.loads(line)
                    own[told["rank"]] = told
                if len(own) == 2:
                    break
            outside, as_json = (
                {
                    rank: self._gpulint("gpu", "account", *how, str(told["pid"]), expected=(0, 1, 2))
                    for rank, told in own.items()
                }
                for how in ((), ("--json",))
            )
            (self.folder / "enough").touch()
            errors = ranks.communicate(timeout=60)[1]
        (self.folder / "enough").unlink(missing_ok=True)
        self.parts.want(len(own) == 2, f"account: {len(own)} ranks: {errors[-500:]}")
        for rank, told in own.items():
            said, reserved = told["account"]["reserved"], told["reserved"]
            self.parts.want(said == reserved, f"account of rank {rank}: {said}, torch {reserved}")
        return {"own": own, "outside": outside, "json": as_json}

    def _write(self, name: str, body: str) -> str:
        return self.program.write(self.folder, name, TRAIN + body)

    def _pytest(self, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        env = environment(self.program.device, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", **variables)
        launched = ("-m", "torch.distributed.run", *LAUNCH, "-m", "pytest", "-q", "-rf", "-c", os.devnull)
        plugins = ("--rootdir", ".", "-p", "no:cacheprovider", "-p", "gpulint.pytest_plugin")
        return python(*launched, *plugins, *options, folder=self.folder, env=env, limit=LIMIT)

    def _gpulint(self, *arguments: str, expected: tuple[int, ...] = (0,)) -> str:
        done = gpulint(*arguments, folder=self.folder, env=environment(self.program.device), limit=LIMIT)
        said = f"gpulint {arguments[0]}: status {done.returncode}: {done.stderr[-500:]}"
        self.parts.want(done.returncode in expected, said)
        return done.stdout or done.stderr


def tools(program: Program, folder: Path, parts: Parts) -> None:
    """All parts of one wrapper, in a folder of its own."""
    inner = folder / program.wrapper.lower()
    inner.mkdir()
    ranks = RankTools(program, inner, parts)
    for part in (ranks.snapshot, ranks.plugin, ranks.account):
        parts.part(part.__name__, part)

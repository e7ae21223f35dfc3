"""Snapshots, the pytest plugin and the account of a process under torchrun: each rank has its own, and they agree with torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LIMIT = 120.0  # seconds for one command
LAUNCH = ("--nproc-per-node", "2", "--standalone")
UNSPLIT = 0.02  # of the peak: by so much a trace's may differ from torch's
TOLERANCE = "20"  # percent: under DDP a cuBLAS workspace of 32 MiB is there in one run and not in the next
HEAD = """
import json, os, sys, time
import torch
import torch.distributed as dist
from torch import nn
{imports}

local = int(os.environ["LOCAL_RANK"])
if "{device}" == "cuda":
    torch.cuda.set_device(local)
device = torch.device("{device}", local) if "{device}" == "cuda" else torch.device("cpu")


def parallel():
    if not dist.is_initialized():
        dist.init_process_group("{backend}")
    network = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).to(device)
    return {wrap}


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
    """The parts of one wrapper. `record` is the data, `problems` what was not as it should be."""

    wrapper: str
    imports: str
    wrap: str
    backend: str
    folder: Path
    record: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def device(self) -> str:
        return "cuda" if self.backend == "nccl" else "cpu"

    def run(self, save: Callable[[], None]) -> None:
        """All parts; one that fails is data too. `save` is called after each."""
        parts: tuple[Callable[[], Any], ...] = (self.snapshot, self.plugin, self.account)
        for part in parts:
            name, begin = part.__name__, time.monotonic()
            try:
                self.record[name] = part()
            except Exception:
                self.record[name] = {"error": traceback.format_exc()[-1500:]}
                self._wrong(f"{name}: {traceback.format_exc()[-300:]}")
            save()
            print(f"{self.wrapper}, {name}: {time.monotonic() - begin:.1f} s", flush=True)

    def snapshot(self) -> Any:
        """`verify --snapshot` writes a file for each rank, whose peak is what torch says of that rank."""
        if self.device != "cuda":
            return None
        script = self._write("script.py", SCRIPT)
        verify = ["verify", "-q", "--output-format", "json", *LAUNCH, "--steps", "8", "--reach", "0"]
        data = json.loads(self._gpulint(*verify, "--snapshot", "run.pickle", script, expected=(0, 1)))
        of_rank = {
            rank["rank"]: max(peak["allocated"] for peak in rank["peaks"]) for rank in data["run"]["ranks"]
        }
        found: dict[str, Any] = {"torch": of_rank, "snapshots": {}}
        for rank, allocated in of_rank.items():
            said = self._gpulint(
                "snapshot",
                f"run-rank{rank}.pickle",
                "--output-format",
                "json",
                "--what-if",
                "expandable_segments:True",
            )
            found["snapshots"][rank] = told = json.loads(said)
            usages = [device["usage"] for one in told["snapshots"] for device in one["devices"]]
            peaks = [usage["peak_allocated"] for usage in usages if usage["peak_allocated"]]
            # What is not split off a large block is in torch's figure and in no trace.
            if len(peaks) != 1 or abs(peaks[0] - allocated) > UNSPLIT * allocated:
                self._wrong(f"snapshot of rank {rank}: peaks {peaks}, torch says {allocated}")
        return found

    def plugin(self) -> Any:
        """A suite under torchrun: an entry for each rank, held against, growth of one rank told by that rank alone."""
        suite = self._write("test_parallel.py", SUITE)
        given = ("--gpu-memory-baseline", "memory.json", "--gpu-memory-tolerance", TOLERANCE)
        written, same = (
            self._pytest(suite, *given, "--gpu-memory-write-baseline"),
            self._pytest(suite, *given),
        )
        grown = self._pytest(suite, *given, GROW="1")
        file = json.loads((self.folder / "memory.json").read_text())
        if sorted((one["rank"], one["world_size"]) for one in file["peaks"]) != [(0, 2), (1, 2)]:
            self._wrong(f"plugin: entries {[one['rank'] for one in file['peaks']]}")
        if written.returncode or same.returncode:
            self._wrong(f"plugin: status {written.returncode}, {same.returncode}")
        if grown.stdout.count("gpu_memory: the peak of this test grew") != 1:
            self._wrong("plugin: growth of rank 1 is not told once")
        texts = {"written": written, "same": same, "grown": grown}
        return {"file": file, **{name: one.stdout[-3000:] for name, one in texts.items()}}

    def account(self) -> Any:
        """What each rank says of itself adds up to what it reserved, and the command says the same from outside."""
        script = self._write("waiting.py", WAITING)
        command = [sys.executable, "-m", "torch.distributed.run", *LAUNCH, "-m", "gpulint", "run"]
        command += [sys.executable, script]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as ranks:
            assert ranks.stdout is not None
            own: dict[int, Any] = {}
            while len(own) < 2:
                line = ranks.stdout.readline()
                if not line:
                    break
                if line.startswith("{"):
                    told = json.loads(line)
                    own[told["rank"]] = told
            outside = {
                rank: self._gpulint("gpu", "account", str(told["pid"]), expected=(0, 1, 2))
                for rank, told in own.items()
            }
            as_json = {
                rank: self._gpulint("gpu", "account", "--json", str(told["pid"]), expected=(0, 1, 2))
                for rank, told in own.items()
            }
            (self.folder / "enough").touch()
            errors = ranks.communicate(timeout=60)[1]
        (self.folder / "enough").unlink(missing_ok=True)
        if len(own) != 2:
            self._wrong(f"account: {len(own)} ranks: {errors[-500:]}")
        for rank, told in own.items():
            if told["account"]["reserved"] != told["reserved"]:
                self._wrong(
                    f"account of rank {rank}: {told['account']['reserved']}, torch {told['reserved']}"
                )
        return {"own": own, "outside": outside, "json": as_json}

    # -- helpers

    def _wrong(self, what: str) -> None:
        self.problems.append(f"{self.wrapper}, {what}")

    def _write(self, name: str, body: str) -> str:
        text = (HEAD + body).format(
            imports=self.imports, wrap=self.wrap, backend=self.backend, device=self.device
        )
        (self.folder / name).write_text(text)
        return name

    def _pytest(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "torch.distributed.run", *LAUNCH, "-m", "pytest", "-q", "-rf"]
        command += [
            "-p",
            "no:cacheprovider",
            "-p",
            "gpulint.pytest_plugin",
            "-c",
            os.devnull,
            "--rootdir",
            ".",
        ]
        return subprocess.run(
            [*command, *options],
            cwd=self.folder,
            env={**self._environment(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )

    def _gpulint(self, *arguments: str, expected: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "gpulint", *arguments],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        if done.returncode not in expected:
            self._wrong(f"gpulint {arguments[0]}: status {done.returncode}: {done.stderr[-500:]}")
        return done.stdout or done.stderr

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self.device == "cpu" else {}
        return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **hidden}

"""Sections about the commands: the experiment, `gpulint run`, `gpulint gpu`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import torch

from kit_cases import device, program, section


@section("C2 C3 E3", cuda=False)
def fragmentation() -> dict[str, Any]:
    """The experiment on the GPU under each setting in fresh processes, beside the allocator model."""
    from gpulint.operator import experiment
    from gpulint.operator.experiment import SETTINGS, standard

    gpu = device() == "cuda"
    rows = []
    for scenario in standard():
        for setting in SETTINGS:
            model = experiment.in_model(scenario, setting)
            row: dict[str, Any] = {
                "scenario": scenario.name,
                "setting": setting or "default",
                "model": short(model),
            }
            if gpu:
                real = experiment.on_gpu(scenario, setting)
                row["gpu"] = {"error": real.error} if real.error else short(real)
                row["same_outcome"] = real.succeeded == model.succeeded
            rows.append(row)
    return {"rows": rows}


def short(outcome: Any) -> dict[str, Any]:
    return {
        name: getattr(outcome, name)
        for name in ("succeeded", "peak_allocated", "peak_reserved", "largest_free", "retries")
    }


# -- commands ------------------------------------------------------------------------------------------------------


LOOP = """
import random, torch, time
chance = random.Random(0)
place = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Embedding(8000, 256), torch.nn.Linear(256, 256), torch.nn.Linear(256, 8000))
model = model.to(place)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(STEPS):
    batch = torch.randint(8000, (8, chance.randint(16, 256)), device=place)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten()).backward()
    optimizer.step()
END
"""


@section("A7 E3", cuda=False)
def run() -> dict[str, Any]:
    """`gpulint run`: settings, timeline, an OOM explained, TERM passed through."""
    from gpulint.operator import launcher, timeline

    gpu = device() == "cuda"
    steps = "150" if gpu else "10"
    plain = LOOP.replace("STEPS", steps).replace("END", "")
    version = launcher.torch_version_of(sys.executable)
    found: dict[str, Any] = {}
    for name, wanted in (
        ("default", None),
        ("auto", "auto"),
        ("expandable and max_split 128", "expandable_segments:True,max_split_size_mb:128"),
    ):
        allocator = launcher.allocator_environment(wanted, version, os.environ) if wanted else None
        ended = launcher.launch([sys.executable, "-c", plain], allocator, 0.02)
        processes = timeline.read_notes(ended.folder)
        result = timeline.to_result([sys.executable], ended, processes)
        samples = result.ranks[0].samples if result.ranks else ()
        found[name] = {
            "code": ended.code,
            "variable": "=".join(ended.allocator) if ended.allocator else None,
            "settings_read_back": result.ranks[0].environment.allocator if result.ranks else None,
            "samples": len(samples),
            "peak_reserved": max((s.reserved or 0 for s in samples), default=0),
            "peak_allocated": max((s.peak or 0 for s in samples), default=0),
            "lines": timeline.summary(ended, processes, None),
        }
    oom = LOOP.replace("STEPS", "3").replace("END", "torch.empty(1 << 45, dtype=torch.uint8, device=place)")
    ended = launcher.launch([sys.executable, "-c", oom], None, 0.02)
    lines = timeline.summary(ended, timeline.read_notes(ended.folder), None)
    found["oom"] = {"code": ended.code, "lines": lines}
    return {**found, "terminate": terminated()}


def terminated() -> dict[str, Any]:
    """TERM to the launcher: the program ends, with its memory, and the status says TERM."""
    code = (
        "import sys; from gpulint.operator import launcher;"
        "sys.exit(launcher.leave_as(launcher.launch(sys.argv[1:], None)))"
    )
    waiting = LOOP.replace("STEPS", "2").replace("END", "print('up', flush=True); time.sleep(60)")
    process = program("-c", code, sys.executable, "-c", waiting)
    process.send_signal(signal.SIGTERM)
    try:
        status = process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    return {"status": status, "right": status == -signal.SIGTERM}


@section("A7 B4")
def gpu() -> dict[str, Any]:
    """Cards and processes through NVML, and ending a process of one's own."""
    from gpulint.operator import gpu as cards

    holding = program(
        "-c",
        "import torch, time; x = torch.zeros(1 << 30, dtype=torch.uint8, device='cuda');"
        "print('up', flush=True); time.sleep(120)",
    )
    free_before = torch.cuda.mem_get_info()[0]
    found: dict[str, Any] = {"opens_gpu": cards.opens_gpu(holding.pid)}
    try:
        with cards.driver() as nvml:
            listed = cards.read_cards(nvml)
        found["cards"] = [card.to_json() for card in listed]
        found["lists_the_process"] = any(t.pid == holding.pid for card in listed for t in card.tenants)
    except cards.NoDriver as missing:
        listed = None
        found["nvml"] = str(missing)
    allowed, refused = cards.candidates([holding.pid, 1], listed or [])
    found["refused"] = [f"{pid}: {reason}" for pid, reason in refused.items()]
    if allowed:
        found["ended"] = cards.end(allowed[0], 10.0)
    else:
        holding.kill()
    holding.wait(30)
    time.sleep(1)
    found["freed_by_ending_it"] = torch.cuda.mem_get_info()[0] - free_before
    return found

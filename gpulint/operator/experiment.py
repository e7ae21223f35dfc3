"""`gpulint experiment fragmentation`: the same allocations under each allocator setting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gpulint.allocator import Allocator, OutOfMemory
from gpulint.memory import alloc_conf
from gpulint.operator.launcher import torch_version_of
from gpulint.operator.scenarios import Scenario
from gpulint.units import format_bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one scenario did under one setting; bytes. `error` is set where it could not be run at all."""

    scenario: str
    setting: str
    source: Literal["gpu", "model"]
    succeeded: bool
    peak_allocated: int = 0
    peak_reserved: int = 0
    allocated: int = 0
    reserved: int = 0
    largest_free: int = 0
    retries: int = 0
    read_back: str | None = None
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def in_model(scenario: Scenario, setting: str, capacity: int | None = None) -> Outcome:
    """Run a scenario in the allocator model."""
    model = Allocator(setting, capacity, scenario.limit)
    addresses: dict[int, int] = {}
    succeeded = True
    try:
        for event in scenario.events:
            if event.action == "alloc":
                addresses[event.name] = model.malloc(event.size, event.stream)
            elif event.action == "free":
                model.free(addresses.pop(event.name))
            else:
                model.empty_cache()
    except OutOfMemory:
        succeeded = False
    end = model.snapshot()
    return Outcome(
        scenario.name,
        setting,
        "model",
        succeeded,
        end.peak_allocated,
        end.peak_reserved,
        end.allocated,
        end.reserved,
        end.largest_free,
        end.retries,
    )


def on_gpu(
    scenario: Scenario, setting: str, interpreter: str = sys.executable, timeout: float = 300
) -> Outcome:
    """Run a scenario on the GPU, in a fresh process with the setting in its environment."""
    environment = {k: v for k, v in os.environ.items() if k not in (alloc_conf.OLD, alloc_conf.NEW)}
    if setting:
        environment[alloc_conf.variable_for(torch_version_of(interpreter))] = setting
    with tempfile.TemporaryDirectory(prefix="gpulint-experiment-") as folder:
        given, result = Path(folder, "scenario.json"), Path(folder, "result.json")
        events = [(event.action, event.name, event.size) for event in scenario.events]
        given.write_text(json.dumps({"limit": scenario.limit, "events": events}))
        script = Path(__file__).with_name("replaying.py")
        try:
            done = subprocess.run(
                [interpreter, str(script), str(given), str(result)],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return Outcome(scenario.name, setting, "gpu", False, error=f"no result within {timeout:g} s")
        if done.returncode != 0 or not result.exists():
            lines = done.stderr.strip().splitlines()
            return Outcome(scenario.name, setting, "gpu", False, error=lines[-1] if lines else "no result")
        return Outcome(scenario.name, setting, "gpu", **json.loads(result.read_text()))


def gpu_works(interpreter: str = sys.executable) -> bool:
    """Whether the interpreter's torch sees a CUDA device; asked in a process of its own."""
    code = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    try:
        return subprocess.run([interpreter, "-c", code], capture_output=True, timeout=120).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def run_all(
    scenarios: Iterable[Scenario], settings: Sequence[str], gpu: bool, interpreter: str = sys.executable
) -> list[Outcome]:
    """Every scenario under every setting."""
    return [
        on_gpu(scenario, setting, interpreter) if gpu else in_model(scenario, setting)
        for scenario in scenarios
        for setting in settings
    ]


def render(scenarios: Sequence[Scenario], outcomes: Sequence[Outcome]) -> list[str]:
    """The outcomes as text, a table a scenario."""
    source = {o.source for o in outcomes}
    lines = [
        "on the GPU, a fresh process each" if source == {"gpu"} else "in the model of the allocator (no GPU)",
        "",
    ]
    for scenario in scenarios:
        lines += [f"{scenario.name}: {scenario.what}"]
        if scenario.limit is not None:
            lines.append(f"the process may have {format_bytes(scenario.limit)}")
        lines.append(f"  {'setting':<48} {'outcome':<9} {'allocated':>11} {'reserved':>11} {'retries':>8}")
        for o in outcomes:
            if o.scenario == scenario.name:
                lines.append(_line(o))
        lines.append("")
    return lines[:-1]


def _line(o: Outcome) -> str:
    setting = o.setting or "default"
    if o.error:
        return f"  {setting:<48} {o.error}"
    ratio = f" {o.peak_reserved / o.peak_allocated:5.2f}x" if o.peak_allocated else ""
    return (
        f"  {setting:<48} {'fits' if o.succeeded else 'OOM':<9} {format_bytes(o.peak_allocated):>11}"
        f" {format_bytes(o.peak_reserved):>11} {o.retries:>8}{ratio}"
    )

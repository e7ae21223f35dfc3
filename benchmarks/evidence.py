"""Measures what every rule's habit costs, and what its advice saves.

    python benchmarks/evidence.py                    # on the GPU: minutes
    python benchmarks/evidence.py --device cpu --quick   # the same programs, tiny, on the CPU probe

Each variant of a case runs several times, alternating with the others; the medians are written to
`benchmarks/results/evidence-<gpu>-<date>.json` and, as a table, to the `.md` beside it. Allocator settings
(GPU601) get a process each. On the CPU, sizes are those of live storages as the caching allocator would round
them, and times include the probe.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import torch  # noqa: E402
from _measure import hardware, table  # noqa: E402
from evidence_cases import all_cases  # noqa: E402
from evidence_cases.setup import FULL, QUICK, Case, LanguageModel, Maker, Setup, Size  # noqa: E402
from verify_fixtures import result_path  # noqa: E402

from gpulint.memory.units import format_bytes  # noqa: E402
from gpulint.runtime.drift import theil_sen  # noqa: E402
from gpulint.runtime.frames import Frames  # noqa: E402
from gpulint.runtime.hostmemory import HostMemory  # noqa: E402

WARMUP = 4
SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:128",
    "expandable_segments:True,max_split_size_mb:128",
    "roundup_power2_divisions:8",
)


@dataclass(frozen=True)
class Figures:
    """One run of one variant; bytes, and milliseconds per step. `notes` are the case's own figures."""

    drift: float
    host_drift: float | None
    peak: int
    reserved: int | None
    ms: float
    notes: dict[str, float]


class Meter:
    """Reads the device: the caching allocator's figures, or the CPU probe's."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._probe: Any = None
        if device == "cpu":
            from gpulint.runtime.probes.host import HostProbe

            self._probe = HostProbe(Frames(str(HERE)))
            self._probe.start()

    def settle(self) -> None:
        """Begin from nothing."""
        gc.collect()
        if self._probe is None:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()

    def wait(self) -> None:
        if self._probe is None:
            torch.cuda.synchronize()

    def allocated(self) -> int:
        return torch.cuda.memory_allocated() if self._probe is None else int(self._probe.allocated())

    def reset(self) -> None:
        if self._probe is None:
            torch.cuda.reset_peak_memory_stats()
        else:
            self._probe.peak(reset=True)

    def peak(self) -> int:
        return torch.cuda.max_memory_allocated() if self._probe is None else int(self._probe.since_reset())

    def reserved(self) -> int | None:
        return torch.cuda.max_memory_reserved() if self._probe is None else None


def measure(maker: Maker, meter: Meter, size: Size, steps: int) -> Figures:
    """Run one variant. `drift` is the Theil-Sen slope of `allocated` after warm-up."""
    meter.settle()
    torch.manual_seed(0)
    base = meter.allocated()
    setup = Setup(size, meter.device, lambda: meter.allocated() - base)
    step = maker(setup)
    for _ in range(WARMUP):
        step()
    meter.wait()
    gc.collect()
    setup.notes.clear()
    meter.reset()
    host = HostMemory()
    levels, heaps, times = [], [], []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        meter.wait()
        times.append(1000 * (time.perf_counter() - begin))
        levels.append(meter.allocated())
        heaps.append(host.heap())
    known = [heap for heap in heaps if heap is not None]
    figures = Figures(
        drift=theil_sen(levels),
        host_drift=theil_sen(known) if len(known) == steps else None,
        peak=meter.peak() - base,
        reserved=meter.reserved(),
        ms=statistics.median(times),
        notes={name: statistics.median(values) for name, values in setup.notes.items()},
    )
    del step, setup
    meter.settle()
    return figures


def middle(runs: Sequence[Figures]) -> dict[str, Any]:
    """The median of every figure over the runs."""

    def of(read: Callable[[Figures], float | None]) -> float | None:
        values = [value for run in runs if (value := read(run)) is not None]
        return statistics.median(values) if values else None

    return {
        "drift": of(lambda run: run.drift),
        "host_drift": of(lambda run: run.host_drift),
        "peak": of(lambda run: run.peak),
        "reserved": of(lambda run: run.reserved),
        "ms": of(lambda run: run.ms),
        "notes": {name: of(lambda run, n=name: run.notes[n]) for name in runs[0].notes},  # type: ignore[misc]
        "runs": [asdict(run) for run in runs],
    }


def measure_case(case: Case, meter: Meter, size: Size, steps: int, runs: int) -> dict[str, Any]:
    """Every variant of a case, in alternation."""
    found: dict[str, list[Figures]] = {name: [] for name in case.variants}
    for _ in range(runs):
        for name, maker in case.variants.items():
            found[name].append(measure(maker, meter, size, steps))
    return {
        "code": case.code,
        "title": case.title,
        "variants": {name: middle(figures) for name, figures in found.items()},
    }


# -- allocator settings, a process each ----------------------------------------------------------------------


def variable_lengths(size: Size, steps: int) -> dict[str, float]:
    """In the child: training on batches of varying length under the allocator setting of the environment."""
    torch.manual_seed(0)
    model = LanguageModel(size).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    longest = 2 * size.length
    lengths = torch.randint(longest // 16, longest, (steps,)).tolist()
    begin = time.perf_counter()
    for length in lengths:
        tokens = torch.randint(0, size.vocabulary, (size.batch, length), device="cuda")
        logits = model(tokens)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return {
        "peak": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "ms": 1000 * (time.perf_counter() - begin) / steps,
        "drift": 0.0,
    }


def allocator_settings(quick: bool, steps: int) -> dict[str, Any]:
    """GPU601: the same training in a process per setting."""
    variants = {}
    for setting in SETTINGS:
        environment = {
            k: v for k, v in os.environ.items() if k not in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
        }
        if setting:
            environment["PYTORCH_CUDA_ALLOC_CONF"] = setting
        command = [sys.executable, __file__, "--allocator-child", str(steps), *(["--quick"] if quick else [])]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode == 0:
            variants[setting or "default"] = json.loads(done.stdout.splitlines()[-1])
        else:
            variants[setting or "default"] = {"error": done.stderr.strip().splitlines()[-1:] or [""]}
    return {"code": "GPU601", "title": "variable-length batches", "variants": variants}


# -- results -------------------------------------------------------------------------------------------------


def environment(device: str) -> dict[str, Any]:
    from gpulint.runtime import watching

    probe = "cuda-allocator" if device == "cuda" else "host-storages"
    return watching.environment(probe)


def rows(cases: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each variant."""

    def shown(value: float | None) -> str:
        return "" if value is None else format_bytes(round(value))

    found = []
    for case in cases:
        for number, (name, v) in enumerate(case["variants"].items()):
            head = (case["code"], case["title"]) if number == 0 else ("", "")
            if "error" in v:
                found.append((*head, name, *[""] * 5, f"failed: {v['error']}"))
                continue
            notes = ", ".join(f"{key} {shown(value)}" for key, value in v.get("notes", {}).items())
            figures = (shown(v["drift"]), shown(v.get("host_drift")), shown(v["peak"]), shown(v["reserved"]))
            found.append((*head, name, *figures, f"{v['ms']:.2f}", notes))
    return found


HEAD = ("rule", "case", "variant", "drift a step", "host drift", "peak", "reserved", "ms a step", "besides")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("codes", nargs="*", help="only these rules")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--quick", action="store_true", help="tiny models, one run of each")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--out", type=Path, help="where the JSON goes, instead of benchmarks/results/")
    parser.add_argument("--allocator-child", type=int, metavar="STEPS", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    size = QUICK if given.quick or given.device == "cpu" else FULL
    if given.allocator_child:
        print(json.dumps(variable_lengths(size, given.allocator_child)))
        return 0
    device = given.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        size = QUICK
    meter, begin = Meter(device), time.perf_counter()
    runs = 1 if given.quick else given.runs
    cases = []
    for case in all_cases():
        if not given.codes or case.code in given.codes:
            cases.append(measure_case(case, meter, size, given.steps, runs))
            print(
                f"{time.perf_counter() - begin:6.1f} s  {case.code} {case.title}", file=sys.stderr, flush=True
            )
    if device == "cuda" and (not given.codes or "GPU601" in given.codes):
        cases.append(allocator_settings(given.quick, 30 if given.quick else 120))
    result = {
        "hardware": hardware(),
        "environment": {"device": device, **environment(device)},
        "size": asdict(size),
        "runs": runs,
        "steps": given.steps,
        "cases": cases,
    }
    path = given.out or result_path("evidence", result)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = table(HEAD, rows(cases))
    path.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    print(text)
    print(f"\nwritten to {path} in {time.perf_counter() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

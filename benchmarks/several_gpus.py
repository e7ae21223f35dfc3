"""Runs data-parallel programs with and without a leak on one rank, and checks which rank the verifier names; and holds
them against limits: peaks and baselines of each rank, growth on one, contexts on foreign cards; and takes their snapshots,
accounts and the peaks of tests.

    python benchmarks/several_gpus.py                       # NCCL, one process for each of two GPUs
    python benchmarks/several_gpus.py --backend gloo        # two processes on the CPU, to try the script
    python benchmarks/several_gpus.py --part limits         # only the second part

Writes `benchmarks/results/ranks-<gpu>-<date>.json` (`rank-limits-…`, `rank-tools-…`) and prints tables. Exit status 1: a program
was judged wrongly.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _limited_ranks import LimitedRanks  # noqa: E402
from _measure import hardware, table  # noqa: E402
from _rank_tools import RankTools  # noqa: E402
from verify_fixtures import result_path  # noqa: E402

from gpulint.runtime.parent.runner import Run, run  # noqa: E402
from gpulint.runtime.record.result import RunResult  # noqa: E402

KEPT = 64 * 1024  # bytes that a leaking rank keeps a step
PROGRAM = """
import os
import torch
import torch.distributed as dist
from torch import nn
{imports}

dist.init_process_group("{backend}")
rank = dist.get_rank()
device = torch.device("{device}", int(os.environ["LOCAL_RANK"])) if "{device}" == "cuda" else torch.device("cpu")
if device.type == "cuda":
    torch.cuda.set_device(device)
network = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).to(device)
model = {wrap}
optimizer = torch.optim.AdamW(model.parameters())
kept = []
for step in range(100_000):
    output = model(torch.randn(16, 1024, device=device))
    loss = output.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {leak}
"""
WRAPPERS = {
    "DDP": (
        "from torch.nn.parallel import DistributedDataParallel",
        'DistributedDataParallel(network, device_ids=[device] if device.type == "cuda" else None)',
    ),
    "FSDP": ("from torch.distributed.fsdp import fully_shard", "fully_shard(network)"),
}
LEAKS: dict[str, tuple[str, tuple[int, ...]]] = {
    "no rank": ("pass", ()),
    "rank 1": ("if rank == 1: kept.append(output.detach())", (1,)),
    "every rank": ("kept.append(output.detach())", (0, 1)),
}


@dataclass(frozen=True)
class Outcome:
    """One program, run: what was expected of it and what the verifier said."""

    wrapper: str
    leak: str
    expected: tuple[int, ...]
    result: RunResult

    def problems(self) -> list[str]:
        """What the verifier got wrong, one line each."""
        name = f"{self.wrapper}, leak on {self.leak}"
        if self.result.end.reason != "stopped":
            return [f"{name}: {self.result.end.message}"]
        found = [(tuple(ranks), leak.bytes_per_step) for leak, ranks in self.result.leaks()]
        wanted = [(self.expected, KEPT)] if self.expected else []
        wrong = [f"{name}: found {found}, wanted {wanted}"] if found != wanted else []
        for rank in self.result.ranks:
            holders = [holder.text for holder in rank.holders]
            if rank.rank in self.expected and not any("`kept`" in text for text in holders):
                wrong.append(f"{name}: rank {rank.rank} names {holders or 'no holder'}")
        return wrong

    def to_json(self) -> dict[str, object]:
        """Verdicts without the samples."""
        ranks = [
            {
                "rank": rank.rank,
                "device": rank.environment.device_name,
                "steps": rank.steps("train"),
                "leaks": {f"line {d.site.line}": d.bytes_per_step for d in rank.leaks()},
                "holders": [holder.text for holder in rank.holders],
                "notes": list(rank.notes),
            }
            for rank in self.result.ranks
        ]
        return {
            "wrapper": self.wrapper,
            "leak": self.leak,
            "end": self.result.end.message,
            "seconds": round(self.result.seconds, 1),
            "ranks": ranks,
            "problems": self.problems(),
        }


def run_program(wrapper: str, leak: str, backend: str, steps: int, folder: Path) -> Outcome:
    """Write one program and sample `steps` of its steps in two processes."""
    imports, wrap = WRAPPERS[wrapper]
    statement, expected = LEAKS[leak]
    device = "cuda" if backend == "nccl" else "cpu"
    script = folder / "parallel.py"
    script.write_text(
        PROGRAM.format(imports=imports, wrap=wrap, leak=statement, backend=backend, device=device)
    )
    launch = ("--nproc-per-node", "2", "--standalone")
    environment = {"OMP_NUM_THREADS": "1"} | ({} if device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""})
    what = Run(str(script), steps=steps, launch=launch, capture=True, timeout=180.0, environment=environment)
    return Outcome(wrapper, leak, expected, run(what))


def limited(backend: str, out: Path | None) -> int:
    """The programs held against limits. What is known is written after each part."""
    device = "cuda" if backend == "nccl" else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        done = [LimitedRanks(name, device, Path(folder), foreign=name == "DDP") for name in WRAPPERS]
        for one in done:
            imports, wrap = WRAPPERS[one.wrapper]
            one.run(imports, wrap, backend, lambda: _save(done, Path(folder), backend, out))
    problems = [problem for one in done for problem in one.problems]
    print("\n".join(problems) or "limits: all as it should be")
    return 1 if problems else 0


def _save(done: Sequence[LimitedRanks], folder: Path, backend: str, out: Path | None) -> None:
    baseline = folder / "ranks.json"
    written = json.loads(baseline.read_text()) if baseline.exists() else None
    card = next((peak["card"] for peak in (written or {}).get("peaks", ())), "cpu")
    record: dict[str, object] = {
        "hardware": hardware(),
        "environment": {"device": "cuda" if backend == "nccl" else "cpu", "device_name": card},
        "backend": backend,
        "programs": {one.wrapper: {**one.record, "problems": one.problems} for one in done},
        "baseline": written,
    }
    path = out or result_path("rank-limits", record)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1).replace(f"{folder}/", "") + "\n", encoding="utf-8")


def tools(backend: str, out: Path | None) -> int:
    """Snapshots, the pytest plugin and accounts of the ranks. What is known is written after each part."""
    done: list[RankTools] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (imports, wrap) in WRAPPERS.items():
            inner = Path(folder, name.lower())
            inner.mkdir()
            done.append(RankTools(name, imports, wrap, backend, inner))
            done[-1].run(lambda: _save_tools(done, folder, backend, out))
    problems = [problem for one in done for problem in one.problems]
    print("\n".join(problems) or "tools: all as it should be")
    return 1 if problems else 0


def _save_tools(done: Sequence[RankTools], folder: str, backend: str, out: Path | None) -> None:
    record: dict[str, object] = {
        "hardware": hardware(),
        "environment": {"device": "cuda" if backend == "nccl" else "cpu"},
        "backend": backend,
        "programs": {one.wrapper: {**one.record, "problems": one.problems} for one in done},
    }
    path = out or result_path("rank-tools", record)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1).replace(f"{folder}/", "").replace(f"{HERE.parent}/", "")
    path.write_text(text + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--part", choices=("leaks", "limits", "tools", "all"), default="all")
    parser.add_argument("--out", type=Path, help="where the JSON of one part goes, not benchmarks/results/")
    given = parser.parse_args(arguments)
    if given.out is not None and given.part == "all":
        parser.error("--out is for one part: --part leaks, limits or tools")
    parts: dict[str, Callable[[], int]] = {
        "leaks": lambda: leaking(given.backend, given.steps, given.out),
        "limits": lambda: limited(given.backend, given.out),
        "tools": lambda: tools(given.backend, given.out),
    }
    return max(part() for name, part in parts.items() if given.part in (name, "all"))


def leaking(backend: str, steps: int, out: Path | None) -> int:
    """The programs with and without a leak."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = [
            run_program(wrapper, leak, backend, steps, Path(folder)) for wrapper in WRAPPERS for leak in LEAKS
        ]
    environments = [rank.environment for outcome in outcomes for rank in outcome.result.ranks[:1]]
    head = {**environments[0].to_json(), "executable": None} if environments else {}
    record: dict[str, object] = {
        "hardware": hardware(),
        "environment": head,
        "backend": backend,
        "programs": [outcome.to_json() for outcome in outcomes],
    }
    path = out or result_path("ranks", record)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    rows = [
        (
            o.wrapper,
            o.leak,
            ", ".join(f"rank {r}: {d.bytes_per_step:.0f} B" for d, ranks in o.result.leaks() for r in ranks)
            or "none",
            "; ".join(o.problems()) or "right",
        )
        for o in outcomes
    ]
    print(table(("program", "leak on", "found", "judged"), rows))
    for outcome in outcomes:
        if outcome.problems() and outcome.result.stderr:
            print(outcome.result.stderr[-3000:], file=sys.stderr)
    return 1 if any(outcome.problems() for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())

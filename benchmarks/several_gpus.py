"""Runs data-parallel programs with and without a leak on one rank, and checks which rank the verifier names; and holds
them against limits: peaks and baselines of each rank, growth on one, contexts on foreign cards; and takes their snapshots,
accounts and the peaks of tests.

    python benchmarks/several_gpus.py                       # NCCL, one process for each of two GPUs
    python benchmarks/several_gpus.py --backend gloo        # two processes on the CPU, to try the script
    python benchmarks/several_gpus.py --part limits         # only the second part

Writes `benchmarks/results/ranks-<gpu>-<date>.json` (`rank-limits-…`, `rank-tools-…`) and prints what was wrong. Exit status 1: a
program was judged wrongly.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from _limited_ranks import limits
from _parts import Parts, about, result_path, write
from _rank_tools import tools
from _ranks import LAUNCH, WRAPPERS, Program

from gpulint.runtime.parent.runner import Run, run
from gpulint.runtime.record.result import RunResult

STEPS = 30  # of a leaking program that are sampled
KEPT = 64 * 1024  # bytes that a leaking rank keeps a step
BODY = """
model = parallel(1024)
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
LEAKS: dict[str, tuple[str, tuple[int, ...]]] = {
    "no rank": ("pass", ()),
    "rank 1": ("if rank == 1: kept.append(output.detach())", (1,)),
    "every rank": ("kept.append(output.detach())", (0, 1)),
}


def leaks(program: Program, folder: Path, parts: Parts) -> None:
    """The program with each of the leaks."""
    for leak in LEAKS:
        parts.part(f"leak on {leak}", partial(_leaking, program, folder, parts, leak))


def _leaking(program: Program, folder: Path, parts: Parts, leak: str) -> dict[str, Any]:
    """Sample the steps of one program in two processes: what was found, without the samples."""
    statement, expected = LEAKS[leak]
    script = program.write(folder, "parallel.py", BODY, leak=statement)
    variables = {"OMP_NUM_THREADS": "1"} | ({} if program.device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""})
    what = Run(
        str(folder / script), steps=STEPS, launch=LAUNCH, capture=True, timeout=180.0, environment=variables
    )
    result = run(what)
    wrong = _problems(result, expected)
    for one in wrong:
        parts.want(False, f"leak on {leak}: {one}")
    if wrong and result.stderr:
        print(result.stderr[-3000:], file=sys.stderr)
    ranks = [
        {
            "rank": rank.rank,
            "device": rank.environment.device_name,
            "steps": rank.steps("train"),
            "leaks": {f"line {d.site.line}": d.bytes_per_step for d in rank.leaks()},
            "holders": [holder.text for holder in rank.holders],
            "notes": list(rank.notes),
        }
        for rank in result.ranks
    ]
    return {"end": result.end.message, "seconds": round(result.seconds, 1), "ranks": ranks}


def _problems(result: RunResult, expected: tuple[int, ...]) -> list[str]:
    """What the verifier got wrong, one line each."""
    if result.end.reason != "stopped":
        return [result.end.message]
    found = [(tuple(ranks), leak.bytes_per_step) for leak, ranks in result.leaks()]
    wanted = [(expected, KEPT)] if expected else []
    wrong = [f"found {found}, wanted {wanted}"] if found != wanted else []
    for rank in result.ranks:
        holders = [holder.text for holder in rank.holders]
        if rank.rank in expected and not any("`kept`" in text for text in holders):
            wrong.append(f"rank {rank.rank} names {holders or 'no holder'}")
    return wrong


PARTS: dict[str, tuple[str, Callable[[Program, Path, Parts], None]]] = {
    "leaks": ("ranks", leaks),
    "limits": ("rank-limits", limits),
    "tools": ("rank-tools", tools),
}


def measured(name: str, backend: str, out: Path | None) -> list[str]:
    """Every wrapper's parts of one kind: what was not as it should be. What is known is written after each part."""
    kind, measure = PARTS[name]
    programs = [Program(wrapper, backend) for wrapper in WRAPPERS]
    record: dict[str, Any] = {**about(programs[0].device), "backend": backend, "programs": {}}
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        baseline = Path(folder, "ranks.json")

        def save() -> None:
            record["baseline"] = json.loads(baseline.read_text()) if baseline.exists() else None
            write(out or result_path(kind, record), record, f"{folder}/")

        for program in programs:
            parts = Parts(program.wrapper, save)
            record["programs"][program.wrapper] = {"parts": parts.record, "problems": parts.problems}
            measure(program, Path(folder), parts)
            problems += parts.problems
    print("\n".join(problems) or f"{name}: all as it should be")
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    parser.add_argument("--part", choices=(*PARTS, "all"), default="all")
    parser.add_argument("--out", type=Path, help="where the JSON of one part goes, not benchmarks/results/")
    given = parser.parse_args(arguments)
    if given.out is not None and given.part == "all":
        parser.error("--out is for one part: --part leaks, limits or tools")
    wrong = [measured(name, given.backend, given.out) for name in PARTS if given.part in (name, "all")]
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())

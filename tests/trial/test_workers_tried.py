"""Fixes of what only workers run: they are measured and compared as ranks are."""

from pathlib import Path

import pytest
from making import finding, fixes

from gpulint.runtime.parent.runner import Run, run
from gpulint.trial.plan import Trial
from gpulint.trial.trying import try_fixes

SCRIPT = """\
import torch
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn


def train(rank, steps):
    torch.manual_seed(rank)
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []
    for _ in range(steps):
        loss = F.cross_entropy(model(torch.randn(8, 16)), torch.randint(0, 4, (8,)))
        kept.append(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("worker", rank, "kept", len(kept))


if __name__ == "__main__":
    START
    print("done")
"""
FORK = """workers = [mp.get_context("fork").Process(target=train, args=(rank, 400)) for rank in range(2)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]"""
SPAWN = "mp.spawn(train, args=(400,), nprocs=2)"
RIGHT = ("kept.append(loss)", "kept.append(loss.item())")
WRONG = (
    "loss = F.cross_entropy(",
    "loss = (1 + rank) * F.cross_entropy(",
)  # the second worker alone computes something else
BREAKING = ("optimizer.step()", "optimizer.step(); rank and 1 // 0")


@pytest.fixture(autouse=True)
def _torch(warm_scripts: None) -> None:
    pytest.importorskip("torch")


def tried(path: Path, *texts: tuple[str, str]) -> Trial:
    environment = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    what = Run(str(path), cwd=str(path.parent), environment=environment)
    made = fixes(*(finding(path, *text) for text in texts))
    return try_fixes(what, made, lambda what, label: run(what), max_runs=6)


@pytest.mark.parametrize("start", [FORK, pytest.param(SPAWN, marks=pytest.mark.slow)], ids=["fork", "spawn"])
def test_workers_are_compared_and_a_wrong_fix_in_one_of_them_is_rejected(tmp_path: Path, start: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("START", start), encoding="utf-8")
    trial = tried(path, WRONG, RIGHT)
    assert [one.status for one in trial.judged] == ["changes the result", "pays"], trial
    assert trial.judged[0].text.startswith("rank 1: what goes backward is ")
    assert trial.noise.endswith("bit for bit")
    nodes = next(gain for gain in trial.gains if gain.unit == "nodes")
    assert (nodes.before > 50, nodes.after) == (True, 0)
    assert [rank.process for rank in trial.before.ranks] == [(1,), (2,)]
    losses = [rank.recording.losses[0] for rank in trial.before.ranks if rank.recording is not None]
    assert losses[0] != losses[1]


def test_a_fix_with_which_one_worker_dies_breaks(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("START", FORK), encoding="utf-8")
    (judged,) = tried(path, BREAKING).judged
    assert judged.status == "breaks"
    assert (
        judged.text
        == "worker 2: the script raised ZeroDivisionError: integer division or modulo by zero before its first step"
    )


def test_a_fix_that_only_a_process_runs_that_is_not_measured_is_not_reached(tmp_path: Path) -> None:
    path, other = tmp_path / "train.py", tmp_path / "other.py"
    body = SCRIPT.partition("\n\nif __name__")[0]
    path.write_text(
        f"import subprocess, sys\nimport other\nsubprocess.run([sys.executable, '-m', 'other'], check=True)\n{body}\ntrain(0, 40)\n",
        encoding="utf-8",
    )
    other.write_text(f"{body}\n\nif __name__ == '__main__':\n    train(1, 30)\n", encoding="utf-8")
    what = Run(str(path), cwd=str(tmp_path), environment={"OMP_NUM_THREADS": "1"})
    trial = try_fixes(what, fixes(finding(other, *RIGHT)), lambda what, label: run(what))
    (judged,) = trial.judged
    assert judged.status == "not reached"
    assert "train.py:3 starts Python itself: what runs there is not measured." in trial.doubts

"""Public scripts, run plainly and watched, on a script of our own in place of a fetched one."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import warm

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

import public_scripts
from _scripts import SCRIPTS, Script
from public_scripts import Bench

TRAINING = """
import os, sys, time
import torch
print(f"begin {time.time():.1f} seconds")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    model.train()
    for step in range(16):
        loss = model(torch.ones(2, 4)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f} | ms/batch {time.perf_counter():.2f}")
    with torch.no_grad():
        print("valid", sum(model(torch.ones(2, 4)).mean().item() for _ in range(4)) / 4)
"""
SCRIPT = Script("own", "some/one", "0" * 40, "train.py", seeds=("import torch", "torch.manual_seed(0)"))


@pytest.fixture(autouse=True)
def _warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        public_scripts, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": warm.TorchPopen})
    )


def bench(folder: Path, source: str) -> Bench:
    checkout = folder / "checkouts" / "some+one"
    checkout.mkdir(parents=True)
    (checkout / "train.py").write_text(source)
    return Bench(folder / "checkouts", "cpu", folder)


def test_every_script_is_pinned_and_named_once() -> None:
    assert len({script.name for script in SCRIPTS}) == len(SCRIPTS)
    assert all(len(script.commit) == 40 for script in SCRIPTS)


def test_a_script_is_run_plainly_and_watched(tmp_path: Path) -> None:
    own = bench(tmp_path, TRAINING)
    plain, watched = own.run(SCRIPT, watch=False), own.run(SCRIPT, watch=True)
    assert (plain.status, len(plain.lines), plain.watched) == (0, 1 + 3 * 17, None)
    assert 20 <= watched.watched["sampled"]["train"] <= len(watched.lines)
    untimed = [[line.partition("|")[0] for line in run.lines[1:]] for run in (plain, watched)]
    assert untimed[1] == untimed[0][: len(untimed[1])]

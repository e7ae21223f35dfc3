"""The measuring of public scripts, on a script of our own in place of a fetched one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import warm

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

import public_scripts
from _scripts import SCRIPTS, Loop, Script, chosen
from public_scripts import (
    Bench,
    Printed,
    Timed,
    compare,
    coupled,
    first_difference,
    normalised,
    overhead,
    overlap,
    side_by_side,
    timed,
)

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
    return Bench(folder / "checkouts", "cpu", {}, folder)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("iter 3: loss 4.1, time 12.51ms, mfu 0.02%", "iter 3: loss 4.1, time 9.07ms, mfu -100.00%"),
        ("| ms/batch 12.10 | loss 4.1", "| ms/batch  2.00 | loss 4.1"),
        ("Epoch: 0001 (0.0040s) loss 1.5", "Epoch: 0001 (1.2345s) loss 1.5"),
        ("Epoch: [0][ 1/15]\tTime  0.31 ( 0.33)\tData  0.01 ( 0.02)\tLoss 6.9 (6.9)",
         "Epoch: [0][ 1/15]\tTime  0.41 ( 0.30)\tData  0.00 ( 0.01)\tLoss 6.9 (6.9)"),
        ("iter_dt 0.00ms; iter 0: train loss 2.3", "iter_dt 31.25ms; iter 0: train loss 2.3"),
        ("<Net object at 0x7f00aa>", "<Net object at 0x7f11bb>"),
    ],
)  # fmt: skip
def test_what_a_second_run_measures_anew_does_not_count(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss 4.1, time 1ms", "loss 4.2, time 1ms"),
        ("Accuracy: 12/100 (12%)", "Accuracy: 13/100 (13%)"),
        ("Test set: Average loss: 0.01", "Test set: Average loss: nan"),
        ("Data 3 files", "Data 4 files"),
    ],
)
def test_figures_count(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


def test_the_watched_lines_must_begin_the_plain_ones() -> None:
    assert first_difference(["a", "b", "c"], ["a", "b"]) is None
    assert first_difference(["a", "b", "c"], ["a", "x"]) == 1
    assert first_difference(["a"], ["a", "b"]) == 1


def test_the_loop_is_timed_from_its_first_line_to_its_last() -> None:
    lines = ("start", *(f"step {n}" for n in range(0, 50, 10)), "end")
    printed = Printed(lines, (5.0, 6.0, 8.0, 10.0, 11.0, 12.0, 20.0), "", 0, 21.0)
    found = timed(printed, Loop("^step", (), every=10))
    assert (found.start, found.loop, found.early, found.late) == (6.0, 6.0, 0.2, 0.1)


def test_every_script_is_pinned_and_named_once() -> None:
    assert len({script.name for script in SCRIPTS}) == len(SCRIPTS)
    assert all(len(script.commit) == 40 for script in SCRIPTS)
    with pytest.raises(ValueError, match="no script is called nothing"):
        chosen(["nothing"], False)


def test_a_script_that_is_left_alone_has_no_problem(tmp_path: Path) -> None:
    record = compare(bench(tmp_path, TRAINING), SCRIPT)
    assert record["problems"] == []
    assert record["difference"] is None
    assert record["plain"]["lines"] == 1 + 3 * 17
    assert 20 <= record["watched"]["sampled"]["train"] <= record["watched"]["lines"]


def test_output_that_depends_on_the_verifier_is_told(tmp_path: Path) -> None:
    marked = TRAINING.replace('print("valid",', 'print("valid", "child.py" in str(sys.orig_argv),')
    record = compare(bench(tmp_path, marked), SCRIPT)
    assert record["difference"]["counts"]
    assert record["problems"] == ["prints something else from line 18 on"]


def test_a_script_that_varies_by_itself_is_not_blamed_on_the_verifier(tmp_path: Path) -> None:
    record = compare(bench(tmp_path, TRAINING), replace(SCRIPT, seeds=None))
    assert record["difference"]["counts"] is False
    assert record["problems"] == []


def test_the_cost_of_a_whole_run(tmp_path: Path) -> None:
    own = bench(tmp_path, TRAINING)
    own.verify = {"steps": 1000}
    record = overhead(own, replace(SCRIPT, loop=Loop(r"^step \d+", ())), 1)
    assert record["steps"]["train"] >= 47  # where the last one ends, no further step begins
    assert record["ratio"] > 0
    assert record["plain"][0]["loop"] > 0


def test_the_cost_side_by_side(tmp_path: Path) -> None:
    own = bench(tmp_path, TRAINING)
    own.verify = {"steps": 1000}
    record = side_by_side(own, replace(SCRIPT, loop=Loop(r"^step \d+", ())), 2, watch=True)
    assert record["problems"] == []
    assert len(record["ratios"]) == len(record["overlaps"]) == 2
    assert record["steps"]["train"] >= 47
    assert len(record["couples"]) == 1


def test_what_one_place_is_faster_than_the_other_cancels_out() -> None:
    found = coupled([1.2 * 1.04, 1.04 / 1.2] * 4)
    assert found["ratio_median"] == found["ratio_mean"] == 1.04
    assert found["ratio_median_95"] == [1.04, 1.04]


def test_how_far_two_loops_were_under_way_together() -> None:
    plain = Timed(start=2.0, loop=4.0, early=0.0, late=0.0, total=7.0, begun=10.0)
    assert overlap(plain, replace(plain, begun=11.0)) == 0.75
    assert overlap(plain, replace(plain, begun=15.0)) == 0.0

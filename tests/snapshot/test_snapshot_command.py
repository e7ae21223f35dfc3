"""`gpulint snapshot` as it is used, and `gpulint verify --snapshot`."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from needs import cards, needs_torch
from support import as_text
from torch_layout import MIB, Program, training, varied

STEP = ("/home/me/project/train.py", 9, "step")


def run(folder: Path, *arguments: str, status: int | None = None) -> subprocess.CompletedProcess[str]:
    return as_text("snapshot", *arguments, cwd=folder, status=status)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = Program()
    varied(program)
    program.dump(tmp_path / "first.pickle")
    program.malloc(30 * MIB, STEP)
    program.dump(tmp_path / "second.pickle")
    return tmp_path


def test_the_peak_by_line_as_text(folder: Path) -> None:
    done = run(folder, "first.pickle")
    assert (done.returncode, done.stderr) == (0, "")
    assert "What makes the peak" in done.stdout
    assert "train.py:" in done.stdout
    assert "Paths are below /home/me." in done.stdout
    assert "What if" not in done.stdout
    assert "Traceback" not in done.stdout


def test_growth_between_two(folder: Path) -> None:
    done = run(folder, "first.pickle", "second.pickle")
    assert "From first.pickle to second.pickle" in done.stdout
    assert re.search(r"\+30\.00 MiB .* \+1 +1  project/train\.py:9 step\n", done.stdout)


def test_json_has_everything_in_bytes(folder: Path) -> None:
    done = run(folder, "first.pickle", "second.pickle", "--output-format", "json", "--what-if")
    data: dict[str, Any] = json.loads(done.stdout)
    device = max(data["snapshots"][0]["devices"], key=lambda one: one["usage"]["events"])  # others are idle
    assert device["usage"]["peak_allocated"] == sum(share["bytes"] for share in device["usage"]["at_peak"])
    assert device["usage"]["at_peak"][0]["line"]["frames"][0]["file"] == "/home/me/train.py"
    assert device["what_if"]["error"] == 0
    assert device["what_if"]["outcomes"][0]["setting"].startswith("expandable_segments")
    assert data["growth"][0]["devices"][0]["changes"][0]["after"] == 30 * MIB


def test_what_if_names_the_best_first_with_the_models_error(folder: Path) -> None:
    done = run(folder, "first.pickle", "--what-if", "expandable_segments:True", "--what-if", "default")
    assert "its error on this trace is +0.0%" in done.stdout
    rows = [line for line in done.stdout.splitlines() if "±" in line]
    assert [row.split()[0] for row in rows] == ["expandable_segments:True", "default"]
    assert "(recorded)" in rows[1]
    assert "`expandable_segments:True` would reserve" in done.stdout


def test_a_card_that_is_too_small(folder: Path) -> None:
    done = run(folder, "first.pickle", "--what-if", "default", "--capacity", "200MiB")
    assert "None of these settings has room" in done.stdout
    assert "what has to fit into 200.00 MiB" in done.stdout
    assert "T4" not in run(folder, "first.pickle", "--what-if", "default", "--card", "T4").stderr


def test_whole_stacks(tmp_path: Path) -> None:
    program = Program()
    training(program, steps=2, depth=3)
    program.dump(tmp_path / "run.pickle")
    assert "torch/nn/modules/linear.py:125 forward" in run(tmp_path, "run.pickle", "--full").stdout
    deep = run(tmp_path, "run.pickle", "--depth", "2").stdout
    assert "linear.py" not in deep
    assert "level_0" in deep


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.pickle"], "missing.pickle"),
        ([], "FILE"),
        (["first.pickle", "--device", "4"], "has nothing of device 4; it has 0"),
        (["first.pickle", "--what-if", "expandable"], "not of the form"),
        (["--what-if", "first.pickle", "second.pickle"], "FILE stands before --what-if"),
        (["first.pickle", "--capacity", "80GiB"], "use them with --what-if"),
        (["first.pickle", "--what-if", "--card", "H1000"], "H100"),
        (["first.pickle", "--what-if", "--capacity", "much"], "is not a size"),
        (["first.pickle", "--report", "nowhere/page.html"], "there is no folder"),
        (["text.pickle"], "is text"),
        (["first.pickle", "--what-if", "max_split_size_mb:5"], "torch takes 20 and more"),
        (["first.pickle", "--what-if", "expandable_segment:True"], "did you mean `expandable_segments`"),
        (["first.pickle", "--what-if", "backend:cudaMallocAsync"], "is the driver's"),
    ],
)
def test_wrong_use_is_one_sentence(folder: Path, arguments: list[str], said: str) -> None:
    (folder / "text.pickle").write_text("{}")
    done = run(folder, *arguments, status=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_page_has_all_of_it_and_needs_nothing(folder: Path) -> None:
    run(folder, "first.pickle", "second.pickle", "--what-if", "--report", "page.html", "-q", status=0)
    page = (folder / "page.html").read_text()
    for said in ("What makes the peak", "What if", "From first.pickle to second.pickle", "<svg", "train.py:"):
        assert said in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_names_in_a_snapshot_cannot_write_into_the_page(tmp_path: Path) -> None:
    program = Program()
    program.malloc(MIB, ("/home/me/<script>alert(1)</script>.py", 3, "<b>"))
    program.dump(tmp_path / "run.pickle")
    run(tmp_path, "run.pickle", "--report", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<script>alert" not in page
    assert "<b>:" not in page


def test_two_programs_have_nothing_in_common(folder: Path) -> None:
    program = Program()
    program.malloc(MIB, ("/home/me/other.py", 3, "main"))
    program.dump(folder / "other.pickle")
    doubt = "are these snapshots of one program?"
    assert doubt in run(folder, "first.pickle", "other.pickle", "--report", "page.html").stdout
    assert doubt in (folder / "page.html").read_text()
    assert doubt not in run(folder, "first.pickle", "second.pickle").stdout


def test_what_changes_nothing_is_not_said_to_save(tmp_path: Path) -> None:
    program = Program()
    program.free(program.malloc(60 * MIB, STEP))
    program.dump(tmp_path / "run.pickle")
    said = run(tmp_path, "run.pickle", "--what-if", "max_split_size_mb:512").stdout
    assert "The recorded settings reserve as little as any of these" in said


def test_a_snapshot_without_a_trace_says_so(tmp_path: Path) -> None:
    program = Program(recording=False)
    program.malloc(3 * MIB, STEP)
    program.dump(tmp_path / "run.pickle")
    said = run(tmp_path, "run.pickle", "--what-if").stdout
    assert "No trace: only what was there" in said
    assert "Device 0 has no trace of allocations" in said
    assert "What makes the peak" not in said
    assert "older than the trace" not in said


SCRIPT = """
import torch
from torch import nn
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Linear(64, 64).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    model(torch.randn(8, 64, device=device)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def _verify(folder: Path, *arguments: str, status: int) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(SCRIPT)
    return as_text("verify", "-q", *arguments, "train.py", cwd=folder, status=status)


@pytest.mark.slow
@needs_torch
@pytest.mark.skipif(cards() > 0, reason="this machine has a GPU")
def test_verify_without_a_gpu_leaves_no_snapshot_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "run.pickle").write_text("of an earlier run")
    done = _verify(tmp_path, "--snapshot", "run.pickle", status=2)
    assert "no snapshot was written: the script used no GPU" in done.stderr
    assert not (tmp_path / "run.pickle").exists()


@pytest.mark.gpu
@pytest.mark.skipif(cards() < 1, reason="needs a CUDA device")
def test_verify_leaves_a_snapshot(tmp_path: Path) -> None:
    _verify(tmp_path, "--snapshot", "run.pickle", status=0)
    data = json.loads(run(tmp_path, "run.pickle", "--output-format", "json").stdout)
    device = max(data["snapshots"][0]["devices"], key=lambda one: one["usage"]["events"])  # others are idle
    assert device["usage"]["events"] > 100
    assert any(
        share["line"]["frames"] and share["line"]["frames"][0]["file"].endswith("train.py")
        for share in device["usage"]["at_end"]
    )

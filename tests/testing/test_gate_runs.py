"""Limits as people set them: `gpulint verify` on small scripts, and under torchrun on two processes."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from fake_nvml import SOURCE
from needs import cards, needs_torch
from support import notebook
from warm import verify

import gpulint
from gpulint.testing import baselines

pytestmark = needs_torch

# A step: 64 KiB of `hidden`, and what `WIDE` adds; the evaluation: 1 MiB of `scores`.
SCRIPT = """
import os
import torch
from torch import nn

model = nn.Linear(64, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = []
for step in range(400):
    batch = torch.randn(64, 64)
    hidden = model(batch)
    if "WIDE" in os.environ:
        wide = torch.zeros(1024, 512)
    hidden.pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 4 == 3:
        model.eval()
        with torch.no_grad():
            for _ in range(3):
                scores = model(torch.zeros(4096 if "EVALUATE" in os.environ else 1024, 64))
        del scores
        model.train()
"""
ON_CPU = ("--device", "cpu", "--steps", "8", "-q")
BASELINE = ("--baseline", "memory.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


def test_a_peak_is_written_compared_and_found_grown(folder: Path) -> None:
    wrote = verify(folder, *ON_CPU, *BASELINE, "--write-baseline", "train.py", status=0)
    assert "1 peak written to memory.json" in wrote.stdout
    first = (folder / "memory.json").read_text()
    assert str(folder) not in first

    same = verify(folder, *ON_CPU, *BASELINE, "--tolerance", "0", "train.py", status=0)
    assert "within the baseline" in same.stdout
    assert same.stdout.rstrip().endswith("Peak within its limits.")
    assert (folder / "memory.json").read_text() == first

    grown = verify(folder, *ON_CPU, *BASELINE, "train.py", WIDE="1", status=1)
    assert "train.py:13: exceeded the baseline the peak of the sampled steps grew to" in grown.stdout
    assert "wide = torch.zeros(1024, 512)" in grown.stdout
    assert "the baseline lists no such line, so 2.00 MiB of it are new" in grown.stdout
    assert "global tensor `wide`" in grown.stdout

    evaluated = verify(folder, *ON_CPU, *BASELINE, "train.py", EVALUATE="1", status=1)
    assert "train.py:21: exceeded the baseline the peak of the evaluation grew to" in evaluated.stdout
    assert "exceeded the baseline the peak of the sampled steps" not in evaluated.stdout


def test_what_the_lines_have_adds_up_to_the_peak(folder: Path) -> None:
    done = verify(folder, *ON_CPU, "--max-peak", "1GiB", "--output-format", "json", "train.py", status=0)
    data = json.loads(done.stdout)
    (rank,) = data["run"]["ranks"]
    assert {peak["stretch"] for peak in rank["peaks"]} >= {"start", "steps", "evaluation"}
    for peak in rank["peaks"]:
        assert peak["traced"] == peak["allocated"]
        assert sum(line["bytes"] for line in peak["lines"]) == peak["allocated"]
    (check,) = data["gate"]["checks"]
    assert (check["limit"], check["status"], check["stretch"]) == ("max-peak", "within", "evaluation")
    assert data["gate"]["measured"].startswith("live tensor storages of a run on the CPU")


def test_a_limit_is_exact_and_everywhere_told(folder: Path) -> None:
    options = ("--max-peak", "512KiB", "--report", "page.html", "--output-format", "markdown")
    summary = folder / "summary.md"
    done = verify(folder, *ON_CPU, *options, "train.py", GITHUB_STEP_SUMMARY=str(summary), status=1)
    assert "| 0 | evaluation | **" in done.stdout
    assert "more than the 512.00 KiB of --max-peak" in done.stdout
    assert "scores = model(" in done.stdout
    assert summary.read_text() == done.stdout
    page = (folder / "page.html").read_text()
    assert "exceeded --max-peak" in page
    assert "A limit on the peak was exceeded" in page


@pytest.mark.skipif(cards() > 0, reason="there is a GPU here")
@pytest.mark.parametrize("limit", [("--max-peak", "1GiB"), (*BASELINE, "--write-baseline")])
def test_without_a_gpu_a_limit_is_an_error_unless_the_cpu_is_asked_for(
    folder: Path, limit: tuple[str, ...]
) -> None:
    done = verify(folder, "-q", "--steps", "5", *limit, "train.py", status=2)
    assert "a limit is about the memory of a GPU, but torch" in done.stderr
    assert "--device cpu" in done.stderr
    assert not (folder / "memory.json").exists()


def test_a_baseline_without_this_program_is_an_error_with_the_command_that_adds_it(folder: Path) -> None:
    other = baselines.Key("train.py --fast", "NVIDIA H200", "2.11")
    baselines.write(str(folder / "memory.json"), {other: baselines.Peak(512)})
    done = verify(folder, *ON_CPU, *BASELINE, "train.py", "--fast", status=2)
    assert "memory.json has no peak of `train.py --fast` for the CPU with torch" in done.stdout
    assert "it has one for NVIDIA H200 with torch 2.11" in done.stdout
    adding = "gpulint verify --baseline memory.json --write-baseline --device cpu train.py --fast"
    assert f"`{adding}`" in done.stdout


def test_the_lines_of_a_notebook_are_those_of_its_cells(folder: Path) -> None:
    head, loop = SCRIPT.strip().split("kept = []\n")
    (folder / "train.ipynb").write_text(notebook(head, loop.replace("400", "40")))
    verify(folder, *ON_CPU, *BASELINE, "--write-baseline", "train.ipynb", status=0)
    ((key, peak),) = baselines.read(str(folder / "memory.json")).items()
    assert key.subject == "train.ipynb"
    assert ("train.ipynb:cell 2", 3, "hidden = model(batch)") in {
        (line.file, line.line, line.code) for line in peak.lines
    }
    grown = verify(folder, *ON_CPU, *BASELINE, "train.ipynb", WIDE="1", status=1)
    assert "train.ipynb:cell 2:5: exceeded the baseline" in grown.stdout
    assert "wide = torch.zeros(1024, 512)" in grown.stdout


def test_a_script_that_fails_writes_no_baseline(folder: Path) -> None:
    (folder / "train.py").write_text(SCRIPT.replace("    hidden.pow", "    assert step < 6\n    hidden.pow"))
    done = verify(folder, *ON_CPU, *BASELINE, "--write-baseline", "train.py", status=2)
    assert "AssertionError" in done.stderr
    assert not (folder / "memory.json").exists()


@pytest.mark.gpu
@pytest.mark.skipif(cards() < 1, reason="needs a CUDA device")
def test_on_a_gpu_the_lines_add_up_and_a_limit_is_exact(folder: Path) -> None:
    moved = SCRIPT.replace("nn.Linear(64, 256)", "nn.Linear(64, 256).cuda()")
    for made in ("torch.randn(64, 64", "torch.zeros(1024, 512", '"EVALUATE" in os.environ else 1024, 64'):
        moved = moved.replace(made, f"{made}, device='cuda'")
    (folder / "train.py").write_text(moved)
    visible = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0")}
    options = ("-q", "--steps", "8", "--max-peak")
    done = verify(folder, *options, "1GiB", "--output-format", "json", "train.py", **visible, status=0)
    (rank,) = json.loads(done.stdout)["run"]["ranks"]
    for peak in rank["peaks"]:
        assert sum(line["bytes"] for line in peak["lines"]) == peak["traced"]
        if peak["stretch"] != "later":  # the script is stopped in it, and the record ends a moment before
            assert peak["traced"] == peak["allocated"]
    most = max(peak["allocated"] for peak in rank["peaks"])
    for limit, status in ((most, 0), (most - 1, 1)):
        verify(folder, *options, f"{limit}B", "train.py", **visible, status=status)


@pytest.mark.skipif(cards() > 0, reason="there is a GPU here, whose own driver is asked")
def test_exclusive_does_not_run_beside_another_process(folder: Path) -> None:
    driver = folder / "driver"
    driver.mkdir()
    (driver / "pynvml.py").write_text(SOURCE)
    cards = [
        {"name": "H200", "total": 141 * 1024**3, "used": 900 * 1024**2, "temperature": 40, "processes": []}
    ]
    (folder / "train.py").write_text("print('it ran')")
    found = {"PYTHONPATH": str(driver), "FAKE_NVML": json.dumps(cards), "CUDA_VISIBLE_DEVICES": "0"}
    done = verify(folder, "-q", "--exclusive", "-s", "train.py", **found, status=2)
    assert "a process that cannot be seen from here with 900.00 MiB uses GPU 0 (H200)" in done.stderr
    assert "it ran" not in done.stdout


@pytest.mark.usefixtures("warm_scripts")
def test_python_has_the_same(folder: Path) -> None:
    path = folder / "train.py"
    told = {"steps": 5, "device": "cpu", "reach": 0.0, "baseline": folder / "memory.json"}
    wrote = gpulint.verify(path, write_baseline=True, **told)  # type: ignore[arg-type]
    assert (wrote.exit_code, wrote.gate.written) == (0, 1)
    (key,) = baselines.read(str(folder / "memory.json"))
    assert (key.subject, key.card) == ("train.py", "cpu")
    found = gpulint.verify(path, max_peak="100KiB", **told)  # type: ignore[arg-type]
    assert found.exit_code == 1
    assert [check.limit for check in found.gate.exceeded] == ["max-peak"]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="there is no baseline"):
        gpulint.verify(path, device="cpu", baseline=folder / "none.json")


WRAPPED = """
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = {wrap}(nn.Linear(64, 256))
"""
PARALLEL = (
    SCRIPT.replace("model = nn.Linear(64, 256)\n", WRAPPED)
    .replace('"WIDE" in os.environ', '"WIDE" in os.environ and dist.get_rank() == 1')
    .replace("step % 4 == 3", "False")
)


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("torch") is not None and not __import__("torch").distributed.is_available(),
    reason="this torch was built without torch.distributed",
)
@pytest.mark.parametrize("wrap", ["DistributedDataParallel", "fully_shard"])
def test_each_rank_has_a_peak_and_growth_on_one_is_found(folder: Path, wrap: str) -> None:
    (folder / "parallel.py").write_text(PARALLEL.replace("{wrap}", wrap))
    # gloo's threads let go of FSDP's buffers a little earlier or later, from run to run.
    options = ("--nproc-per-node", "2", *ON_CPU, *BASELINE, "--tolerance", "30")
    wrote = verify(folder, *options, "--write-baseline", "parallel.py", status=0)
    assert "2 peaks written" in wrote.stdout
    assert verify(folder, *options, "parallel.py").returncode == 0
    grown = verify(folder, *options, "parallel.py", WIDE="1", status=1)
    assert "the peak of the sampled steps on rank 1 grew to" in grown.stdout
    assert "on rank 0 grew" not in grown.stdout
    assert "wide = torch.zeros(1024, 512)" in grown.stdout


def test_what_comes_after_the_sampled_steps_is_no_part_of_them(folder: Path) -> None:
    """Where something leaks the script goes on for a while, to see whether it is let go of, and the leak with it."""
    leaking = SCRIPT.replace("    optimizer.step()", "    optimizer.step()\n    kept.append(hidden)").replace(
        "step % 4 == 3", "False"
    )
    (folder / "train.py").write_text(leaking.replace("400", "60"))
    done = verify(folder, *ON_CPU, "--max-peak", "1GiB", "--output-format", "json", "train.py")
    data = json.loads(done.stdout)
    (rank,) = data["run"]["ranks"]
    peaks = {peak["stretch"]: peak for peak in rank["peaks"]}
    assert peaks["later"]["allocated"] > peaks["steps"]["allocated"] > peaks["start"]["allocated"]
    assert [peak["traced"] for peak in peaks.values()] == [peak["allocated"] for peak in peaks.values()]
    sampled = [sample["peak"] for sample in rank["samples"] if sample["sampled"]]
    assert peaks["steps"]["allocated"] == max(sampled)
    (check,) = data["gate"]["checks"]
    assert check["now"] == peaks["later"]["allocated"]

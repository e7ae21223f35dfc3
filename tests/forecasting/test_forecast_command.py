"""`gpulint forecast` and `gpulint.forecast` as they are used: real runs, real output, exit statuses."""

import json
import subprocess
from pathlib import Path

import pytest
from support import as_text, notebook

torch = pytest.importorskip("torch")

import gpulint  # noqa: E402
from gpulint.forecasting.api import calibrate  # noqa: E402
from gpulint.forecasting.recorder import ForecastError  # noqa: E402

pytestmark = pytest.mark.usefixtures("warm_scripts")

ROWS = """
import sys, torch

count = int(sys.argv[sys.argv.index("--rows") + 1]) if "--rows" in sys.argv else 4
layer = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
for _ in range(4):
    layer(torch.randn(count, 1024, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("done")
"""


def run(*arguments: str, cwd: Path, status: int | None = None) -> subprocess.CompletedProcess[str]:
    return as_text("forecast", *arguments, cwd=cwd, timeout=280, status=status)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "rows.py"
    path.write_text(ROWS)
    return path


@pytest.mark.slow
def test_the_largest_batch_is_tried_and_the_next_one_too(script: Path) -> None:
    options = ("--card", "3GiB", "--find-batch", "--rows", "--output-format", "json")
    done = run(*options, script.name, cwd=script.parent, status=0)
    found = json.loads(done.stdout)
    tried = {one["size"]: one["fits"] for one in found["search"]["tried"]}
    largest = found["search"]["largest"]
    assert 50 < largest < 400
    assert tried[largest] == "yes"
    assert tried[largest + 1] in ("no", "open")
    assert found["arguments"] == ["--rows", str(largest)]
    assert found["process"]["high"] <= found["card"]["memory"]
    assert found["schema"] == 1


@pytest.mark.slow
def test_what_does_not_fit_exits_with_1_and_has_a_page(script: Path) -> None:
    page = script.parent / "forecast.html"
    options = ("--card", "3GiB", "--report", page.name, "-q")
    done = run(*options, script.name, "--rows", "4000", cwd=script.parent, status=1)
    assert "It does not fit" in done.stdout
    assert "out of memory is to be expected" in done.stdout
    assert "done" not in done.stdout
    assert "It does not fit" in page.read_text()


@pytest.mark.slow
def test_a_peak_above_the_one_that_is_allowed_exits_with_1(script: Path) -> None:
    assert run("--max-peak", "850MiB", "-q", script.name, cwd=script.parent).returncode == 1
    assert run("--max-peak", "2GiB", "-q", script.name, cwd=script.parent).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--card", "banana", "rows.py"), "no card is known as"),
        (("--alloc-conf", "nonsense", "rows.py"), "not of the form"),
        ((), "name a script to forecast"),
        (("no-such.py",), "the script no-such.py does not exist"),
        (("--python", "/no/python", "rows.py"), "does not exist or cannot be executed"),
        (("--report", "no/folder/f.html", "rows.py"), "no/folder"),
        (("--find-batch", "--rows", "rows.py", "--rows", "auto"), "is no batch size"),
    ],
)
def test_wrong_use_is_told_in_a_sentence_before_anything_runs(
    script: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = run(*arguments, cwd=script.parent, status=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_notebook_is_forecast_as_the_script_of_its_cells(tmp_path: Path) -> None:
    cells = ["%matplotlib inline\nimport torch\nfrom helper import SIZE", ROWS.replace("4 *", "").strip()]
    kernel = {"name": "python3", "language": "python", "display_name": "Python 3"}
    (tmp_path / "helper.py").write_text("SIZE = 1024\n")
    (tmp_path / "book.ipynb").write_text(notebook(*cells, kernelspec=kernel))
    done = run("-q", "book.ipynb", "--rows", "2", cwd=tmp_path, status=0)
    assert done.stdout.startswith("book.ipynb --rows 2: on NVIDIA H200")
    assert "book.ipynb:cell 2:7" in done.stdout
    written = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}  # Python's own, of the helper
    assert written == {"helper.py", "book.ipynb"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card to measure")
def test_without_a_card_there_is_nothing_to_calibrate(tmp_path: Path) -> None:
    done = run("--calibrate", "card.json", cwd=tmp_path, status=2)
    assert done.stderr == "gpulint: the card could not be measured: torch finds no CUDA device\n"
    assert not (tmp_path / "card.json").exists()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_card_is_measured(tmp_path: Path) -> None:
    done = run("--calibrate", "card.json", cwd=tmp_path)
    if done.returncode == 2 and "other programs took or gave back memory" in done.stderr:
        pytest.skip("the card is busy")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "card.json").read_text())
    assert found["memory"] == torch.cuda.get_device_properties(0).total_memory
    assert 100 << 20 < found["context"] < 3 << 30
    assert found["cublas_workspace"] > 0


def test_a_card_that_others_use_meanwhile_is_not_measured(tmp_path: Path) -> None:
    python = tmp_path / "python"
    for context, problem in ((-5_319_163_904, True), (0, True), (9 << 30, True), (600 << 20, False)):
        said = {
            "label": "NVIDIA L4", "memory": 24 << 30, "capability": [8, 9], "processors": 58, "context": context,
            "cublas_workspace": 8 << 20, "cublaslt_workspace": 1 << 20, "torch": "2.11", "others": 0,
        }  # fmt: skip
        python.write_text(f"#!/bin/sh\necho '{json.dumps(said)}'\n")
        python.chmod(0o755)
        if problem:
            with pytest.raises(ForecastError, match="other programs took or gave back memory"):
                calibrate(str(python))
        else:
            found = calibrate(str(python))
            assert (found["name"], found["measured"], found["capability"]) == ("l4", True, [8, 9])
            assert found.items() >= {"context": context, "torch": "2.11", "held_by_others": 0}.items()


@pytest.mark.slow
def test_a_script_that_fails_shows_its_own_traceback(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import torch\ndef f():\n    raise KeyError('lost')\nf()\n")
    done = run("-q", "broken.py", cwd=tmp_path, status=2)
    assert 'broken.py", line 3, in f' in done.stderr
    assert done.stderr.rstrip().endswith("gpulint: the script raised KeyError: 'lost'")
    assert "gpulint/forecasting" not in done.stderr


@pytest.mark.slow
def test_a_module_runs_as_one(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "__init__.py").write_text("")
    (tmp_path / "project" / "train.py").write_text("from project import data\nassert data.x.is_cuda\n")
    (tmp_path / "project" / "data.py").write_text("import torch\nx = torch.ones(1 << 20).cuda()\n")
    done = run("-q", "-m", "project.train", cwd=tmp_path, status=0)
    assert "project/data.py:2" in done.stdout


@pytest.mark.slow
def test_changes_are_forecast_each_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.second(self.first(x).relu())

model = nn.Sequential(*[Block() for _ in range(8)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
model.train()
for _ in range(4):
    loss = model(torch.randn(8192, 256, device="cuda")).square().mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
model.eval()
for _ in range(2):
    found = model(torch.randn(32768, 256, device="cuda"))
"""
    )
    told = gpulint.forecast(path, try_changes=True)
    saved = {one.name: told.allocated.value - one.allocated for one in told.changes if not one.problem}
    assert set(saved) >= {
        "checkpointing",
        "bf16",
        "no_grad",
        "foreach",
        "set_to_none",
        "del",
        "expandable_segments",
    }
    assert saved["no_grad"] > told.allocated.value / 2  # the evaluation makes the peak
    assert told.changes[0].name == "no_grad"
    training = gpulint.forecast(_without_evaluation(path), try_changes=True)
    saved = {
        one.name: training.allocated.value - one.allocated for one in training.changes if not one.problem
    }
    assert saved["checkpointing"] > training.allocated.value / 3
    assert saved["bf16"] > 0


def _without_evaluation(path: Path) -> Path:
    shorter = path.with_name("shorter.py")
    shorter.write_text(path.read_text().partition("model.eval()")[0])
    return shorter


def test_nonsense_in_python_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 3"):
        gpulint.forecast("train.py", steps=1)
    with pytest.raises(gpulint.ForecastError, match="does not exist"):
        gpulint.forecast("no-such-script.py")

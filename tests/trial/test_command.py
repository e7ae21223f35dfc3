"""`gpulint verify --fix`: options, output, exit status, and files that stay whole whatever happens."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from needs import needs_torch
from support import environment, gpulint

from gpulint.cli._dispatch import run as dispatch

pytestmark = needs_torch

SCRIPT = """\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0
for step in range(40):
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(f"mean {float(total) / 40:.4f}")
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return path


@pytest.mark.usefixtures("execute")
def test_what_pays_is_written_and_then_nothing_is_left(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["verify", "--fix", "train.py"]) == 0
    shown = capsys.readouterr()
    assert "train.py:14: pays GPU101" in shown.out
    last = shown.out.splitlines()[-1]
    assert re.fullmatch(r"\w.* → .*: the fix pays and changes no result; written to train.py\.", last), last
    assert "run 3 of at most 12: with GPU101, train.py:14" in shown.err
    fixed = script.read_text(encoding="utf-8")
    assert fixed != SCRIPT
    assert "total += loss.detach()" in fixed or "total += loss.item()" in fixed
    assert dispatch(["verify", "--fix", "--quiet", "train.py"]) == 0
    assert "there is nothing to try" in capsys.readouterr().out
    assert script.read_text(encoding="utf-8") == fixed


# Two leaks: the linter has a fix for the first, and sees nothing of the second, whose holder stands behind two names.
LEFT = """
import torch

class Store:
    def __init__(self):
        self.rows = {}
    def put(self, key, row):
        self.rows[key] = row

net = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
store, total = Store(), 0.0
for step in range(40):
    out = net(torch.randn(64, 256))
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    store.put(step, getattr(out, "data").clone())
"""


@pytest.mark.usefixtures("execute")
def test_what_running_alone_finds_is_said_to_be_left(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(LEFT, encoding="utf-8")
    assert dispatch(["verify", "-q", "train.py"]) == 1
    assert "1 unpredicted" in capsys.readouterr().out
    assert dispatch(["verify", "--fix", "-q", "train.py"]) == 1
    said = capsys.readouterr().out
    assert "Left, and in no fix, train.py:8: 64.00 KiB a step" in said
    assert said.splitlines()[-1] == "No finding of this program has a fix; what drifts is left."
    script.write_text(
        LEFT.replace("    optimizer.step()", "    optimizer.step()\n    total += loss"), encoding="utf-8"
    )
    assert dispatch(["verify", "--fix", "-q", "--output-format", "json", "train.py"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert [one["status"] for one in data["fixes"]] == ["pays"]
    assert data["written"] == [str(script)]
    assert [one["device"] for one in data["left"]["unpredicted"]] == [64 * 1024]


@pytest.mark.usefixtures("execute")
def test_a_dry_run_writes_nothing_and_says_what_it_would(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(os.listdir())
    assert dispatch(["verify", "--fix", "--dry-run", "-q", "train.py"]) == 1
    shown = capsys.readouterr()
    assert "--- a/train.py" in shown.out
    assert "nothing was written (--dry-run)" in shown.out
    assert shown.err == ""
    assert (script.read_text(encoding="utf-8"), sorted(os.listdir())) == (SCRIPT, before)


@pytest.mark.usefixtures("execute")
def test_json_html_and_a_jobs_summary(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    arguments = ["verify", "--fix", "--dry-run", "-q", "--output-format", "json", "--report", "r.html"]
    assert dispatch([*arguments, "train.py"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["exit_code"], data["fixes"][0]["status"], data["written"]) == (1, "pays", [])
    assert Path("r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "### gpulint tried the fixes of `train.py`" in Path("summary.md").read_text(encoding="utf-8")
    assert dispatch(["verify", "--fix", "--dry-run", "-q", "--output-format", "markdown", "train.py"]) == 1
    assert "| pays |" in capsys.readouterr().out


@pytest.mark.usefixtures("execute")
@pytest.mark.parametrize(("other", "why"), [("symbolic", "leads out of"), ("hard", "hard links")])
def test_a_file_that_would_not_be_written_is_not_tried(
    script: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    other: str,
    why: str,
) -> None:
    """It is judged all the same: the program that is run may lie anywhere."""
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "train.py"
    os.link(script, elsewhere)
    if other == "symbolic":
        script.unlink()
        script.symlink_to(elsewhere)
    dispatch(["verify", "--fix", "-q", "train.py"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "GPU101" in shown
    assert why in shown
    assert elsewhere.read_text(encoding="utf-8") == SCRIPT
    assert script.samefile(elsewhere)


@pytest.mark.usefixtures("execute")
def test_a_script_that_fails_is_status_2_with_its_own_words(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(SCRIPT.replace("range(40)", "range(int('x'))"), encoding="utf-8")
    assert dispatch(["verify", "--fix", "-q", "train.py"]) == 2
    shown = capsys.readouterr()
    assert "Nothing could be tried: the script raised ValueError" in shown.out
    assert "invalid literal for int()" in shown.err


@pytest.mark.slow
def test_killed_at_any_moment_it_leaves_the_sources_whole(script: Path) -> None:
    command = [sys.executable, "-m", "gpulint", "verify", "--fix", "train.py"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment(OMP_NUM_THREADS="1")
    )
    for line in process.stderr:
        if b"run 3" in line:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert script.read_text(encoding="utf-8") == SCRIPT
    assert os.listdir() == ["train.py"]
    deadline = time.monotonic() + 20
    while runs_in(script.parent) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not runs_in(script.parent)


def runs_in(folder: Path) -> list[int]:
    """The processes whose working directory is the folder."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if (
                entry.isdigit()
                and int(entry) != os.getpid()
                and os.readlink(f"/proc/{entry}/cwd") == str(folder)
            ):
                found.append(int(entry))
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_every_rank_is_tried(script: Path) -> None:
    """Two processes of torchrun, each with its own results, their prints in any order."""
    script.write_text(SCRIPT.replace("print(", "import os\nprint(os.environ['RANK'], "), encoding="utf-8")
    options = ["--fix", "--dry-run", "-q", "--nproc-per-node", "2", "--output-format", "json"]
    done = gpulint(
        "verify",
        *options,
        "train.py",
        cwd=script.parent,
        env=environment(OMP_NUM_THREADS="1"),
        timeout=280,
        status=1,
    )
    data = json.loads(done.stdout)
    assert len(data["runs"]["before"]["ranks"]) == 2
    recordings = [rank["recording"] for rank in data["runs"]["before"]["ranks"]]
    assert recordings[0]["losses"] != recordings[1]["losses"]  # seeded by rank
    assert data["noise"].endswith("bit for bit")
    assert [fix["status"] for fix in data["fixes"]] == ["pays"]

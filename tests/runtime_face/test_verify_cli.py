"""`gpulint verify` as people call it, on small scripts."""

from __future__ import annotations

import json
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support import gpulint, on_terminal
from warm import verify

from gpulint.findings import Finding, Severity

sys.path.insert(0, str(Path(__file__).parent))

from scripts import CLEAN, DOUBTFUL, LABELLING, LEAKING, MISSHAPEN, SCORING, SURPRISING

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(LEAKING, encoding="utf-8")
    return tmp_path


def test_confirmed_drift_is_exit_1_and_is_shown_beside_its_line(folder: Path) -> None:
    done = verify(folder, "--steps", "10", "train.py", status=1)
    assert "confirmed GPU101" in done.stdout
    assert "losses.append(loss)" in done.stdout
    assert "512 B a step" in done.stdout
    assert "list `losses` in `train()`, train.py:17" in done.stdout
    assert "10 steps sampled" in done.stdout
    assert "⣿" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr.startswith("gpulint: running train.py")
    assert "note: Ran on the CPU" in done.stdout
    assert verify(folder, "--steps", "10", "--max-drift", "1KiB", "-q", "train.py").returncode == 0


def test_a_finding_that_does_not_hold_is_refuted(folder: Path) -> None:
    (folder / "clean.py").write_text(CLEAN, encoding="utf-8")
    claim = Finding("GPU101", "held-graph", Severity.WARNING, "kept", str(folder / "clean.py"), 17, 9, 17, 35)
    (folder / "claims.json").write_text(json.dumps([claim.to_json()]), encoding="utf-8")
    done = verify(folder, "--steps", "10", "--output-format", "json", "--findings", "claims.json", "clean.py")
    data: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == data["exit_code"] == 0
    assert [v["status"] for v in data["verdicts"]] == ["refuted"]
    assert data["run"]["ranks"][0]["environment"]["probe"] == "host-storages"
    assert data["sampled_steps"] == 10


def test_unpredicted_drift_and_chosen_rules(folder: Path) -> None:
    (folder / "surprise.py").write_text(SURPRISING, encoding="utf-8")
    done = verify(folder, "--steps", "10", "-q", "--ignore", "GPU1", "surprise.py", status=1)
    assert (
        "unpredicted growth that no finding explains: 4.00 KiB a step of what would be on the GPU"
        in done.stdout
    )
    assert "global dict `KEPT[...]`" in done.stdout
    done = verify(folder, "--steps", "10", "-q", "--ignore", "GPU1", "train.py", status=1)
    assert "GPU101" not in done.stdout
    assert "unpredicted" in done.stdout


def test_a_suspicion_is_shown_where_the_run_confirms_it(tmp_path: Path) -> None:
    (tmp_path / "labels.py").write_text(DOUBTFUL, encoding="utf-8")
    (tmp_path / "main.py").write_text(LABELLING, encoding="utf-8")
    done = verify(tmp_path, "--steps", "5", "-q", "main.py")
    assert "confirmed GPU201 `network` runs with grad enabled" in done.stdout
    assert "doubt:    nothing moves the network to a GPU (low confidence without a run)" in done.stdout
    guarded = LABELLING.replace("for _", "torch._C._set_grad_enabled(False)\nfor _")
    (tmp_path / "main.py").write_text(guarded, encoding="utf-8")
    done = verify(tmp_path, "--steps", "5", "-q", "main.py", status=0)
    assert "0 findings" in done.stdout
    done = verify(tmp_path, "--steps", "5", "-q", "--confidence", "low", "main.py")
    assert "refuted GPU201" in done.stdout
    (tmp_path / "gpulint.toml").write_text('confidence = "low"\n', encoding="utf-8")
    assert "refuted GPU201" in verify(tmp_path, "--steps", "5", "-q", "main.py").stdout


def test_a_forward_for_nothing_is_found_by_running_alone(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(SCORING, encoding="utf-8")
    done = verify(tmp_path, "--steps", "5", "-q", "--report", "report.html", "main.py", status=0)
    assert "main.py:6: found by running `Sequential` runs with grad enabled, in eval mode, but" in done.stdout
    assert "6 |     scores = network(torch.randn(64, 64))" in done.stdout
    assert "a call keeps 256.00 KiB of activations for nothing" in done.stdout
    assert "0 findings; 1 forward for nothing" in done.stdout
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Forwards that no backward goes through" in page
    assert "256.00 KiB of activations" in page
    done = verify(tmp_path, "--steps", "5", "-q", "--output-format", "json", "main.py")
    (found,) = json.loads(done.stdout)["wasted"]
    told = (found["file"], found["line"], found["mode"], found["bytes"])
    assert told == (str(script), 6, "eval", 256 << 10)


def test_findings_from_a_file(folder: Path) -> None:
    options = ("--confidence", "low", "--output-format", "json", "--no-cache")
    given = gpulint(*options, "train.py", cwd=folder).stdout.decode()
    (folder / "findings.json").write_text(given, encoding="utf-8")
    done = verify(folder, "--steps", "10", "-q", "--findings", "findings.json", "train.py")
    assert "confirmed GPU101" in done.stdout
    for content, words in (
        ("{", "is not JSON"),
        ('[{"code": 3}]', "is not what gpulint"),
        ("", "is not JSON"),
    ):
        (folder / "findings.json").write_text(content, encoding="utf-8")
        done = verify(folder, "--findings", "findings.json", "train.py", status=2)
        assert words in done.stderr
    assert "No such file" in verify(folder, "--findings", "missing.json", "train.py").stderr


def test_a_module_with_its_arguments(folder: Path) -> None:
    package = folder / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(LEAKING, encoding="utf-8")
    done = verify(folder, "--steps", "5", "-q", "-s", "-m", "pkg.train", "9", "--steps=3", "--keep")
    assert "argv ['9', '--steps=3', '--keep']" in done.stdout
    assert "GPU101" in done.stdout


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("raises.py", MISSHAPEN, "the script raised ValueError: a batch of another width after 5 steps"),
        ("exits.py", "import sys, torch; sys.exit('no data')", "called sys.exit(1) before its first step"),
        ("nothing.py", "import torch", "ended without a step"),
        ("plain.py", "x = 1", "ended without importing torch"),
        ("broken.py", "def", "SyntaxError"),
    ],
)
def test_scripts_that_fail_give_one_clear_line(folder: Path, name: str, text: str, words: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    done = verify(folder, "-q", name, status=2)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("gpulint: ")
    assert words in last
    if name == "raises.py":
        assert f'File "{folder / name}", line 14' in done.stderr
        assert "mat1 and mat2 shapes cannot be multiplied" in done.stderr
        assert f"{os.sep}gpulint{os.sep}" not in done.stderr  # no frame of ours stands between the script's
        assert done.stderr.count("Traceback (most recent call last):") == 2
        assert "2 steps sampled until then" in last


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.py"], "there is no script missing.py"),
        (["--steps", "0", "train.py"], "--steps"),
        (["--max-drift", "much", "train.py"], "'much' is not a size"),
        (["--show-output", "--output-format", "json", "train.py"], "leave one out"),
        (["--report", "no/such/page.html", "train.py"], "there is no folder"),
        (["--python", "no-python", "train.py"], "no-python does not exist"),
        ([], "SCRIPT is missing"),
        (["--write-baseline", "train.py"], "--write-baseline needs --baseline FILE"),
        (["--baseline", "memory.json", "train.py"], "there is no baseline memory.json"),
        (["--baseline", "broken.json", "train.py"], "is not JSON"),
        (["--baseline", "none/memory.json", "--write-baseline", "train.py"], "does not exist"),
        (["--exclusive", "--device", "cpu", "train.py"], "--exclusive is about GPUs"),
        (["--max-peak", "much", "train.py"], "is not a size"),
        (["--fix", "--max-peak", "1GiB", "train.py"], "use them without --fix"),
        (["--output-format", "markdown", "train.py"], "use it with --fix, --max-peak or --baseline"),
        (["--dry-run", "train.py"], "use it with --fix"),
        (["--fix", "--show-output", "train.py"], "cannot be used with --fix"),
        (["--fix", "--cut-epochs", "train.py"], "cannot be used with --fix"),
        (["--fix", "--max-runs", "2", "train.py"], "--max-runs"),
        (["--fix", "--snapshot", "run.pickle", "train.py"], "--snapshot cannot be used with --fix"),
        # rules that there are not
        *((["--select=" + code, "train.py"], "--select") for code in ("XYZ", "GPU999", "", "GPU0")),
        *((["--ignore=" + code, "train.py"], "--ignore") for code in ("GPU999", "ALL")),
    ],
)
def test_wrong_use_is_exit_2(folder: Path, arguments: list[str], words: str) -> None:
    (folder / "broken.json").write_text("{")
    done = verify(folder, *arguments, status=2)
    assert words in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert ("gpulint: running" in done.stderr) == ("--python" in arguments)


def test_live_progress_on_a_terminal(folder: Path) -> None:
    variables = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    text = on_terminal("verify", "--steps", "8", "train.py", cwd=folder, columns=120, **variables)
    assert "\x1b[" in text
    assert "confirmed" in text
    assert "no step yet" in text
    assert re.search(r"training: \d+ of 8 steps", text)
    assert "since warm-up" in text
    assert "argv" not in text

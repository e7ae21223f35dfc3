"""`gpulint verify` as people call it, on small scripts."""

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
import scripts
from made import text_of
from needs import needs_torch
from support import gpulint, on_terminal
from warm import run_linter, verify

from gpulint.findings import Finding, Severity
from gpulint.reports.page import page as write_page
from gpulint.reports.verify import document
from gpulint.runtime.parent.runner import Run, run
from gpulint.runtime.parent.verdict import Verification
from gpulint.units import format_bytes

pytestmark = needs_torch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(scripts.LEAKING, encoding="utf-8")
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
    (folder / "clean.py").write_text(scripts.CLEAN, encoding="utf-8")
    claim = Finding("GPU101", "held-graph", Severity.WARNING, "kept", str(folder / "clean.py"), 17, 9, 17, 35)
    (folder / "claims.json").write_text(json.dumps([claim.to_json()]), encoding="utf-8")
    done = verify(folder, "--steps", "10", "--output-format", "json", "--findings", "claims.json", "clean.py")
    data: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == data["exit_code"] == 0
    assert [v["status"] for v in data["verdicts"]] == ["refuted"]
    assert data["run"]["ranks"][0]["environment"]["probe"] == "host-storages"
    assert data["sampled_steps"] == 10


def test_unpredicted_drift_and_chosen_rules(folder: Path) -> None:
    (folder / "surprise.py").write_text(scripts.SURPRISING, encoding="utf-8")
    done = verify(folder, "--steps", "10", "-q", "--ignore", "GPU1", "surprise.py", status=1)
    assert "growth that no finding explains: 4.00 KiB a step of what would be on the GPU" in done.stdout
    assert "global dict `KEPT[...]`" in done.stdout
    done = verify(folder, "--steps", "10", "-q", "--ignore", "GPU1", "train.py", status=1)
    assert "GPU101" not in done.stdout
    assert "unpredicted" in done.stdout


def test_a_suspicion_is_shown_where_the_run_confirms_it(tmp_path: Path) -> None:
    (tmp_path / "labels.py").write_text(scripts.DOUBTFUL, encoding="utf-8")
    (tmp_path / "main.py").write_text(scripts.LABELLING, encoding="utf-8")
    done = verify(tmp_path, "--steps", "5", "-q", "main.py")
    assert "confirmed GPU201 `network` runs with grad enabled" in done.stdout
    assert "doubt:    nothing moves the network to a GPU (low confidence without a run)" in done.stdout
    guarded = scripts.LABELLING.replace("for _", "torch._C._set_grad_enabled(False)\nfor _")
    (tmp_path / "main.py").write_text(guarded, encoding="utf-8")
    done = verify(tmp_path, "--steps", "5", "-q", "main.py", status=0)
    assert "0 findings" in done.stdout
    done = verify(tmp_path, "--steps", "5", "-q", "--confidence", "low", "main.py")
    assert "refuted GPU201" in done.stdout
    (tmp_path / "gpulint.toml").write_text('confidence = "low"\n', encoding="utf-8")
    assert "refuted GPU201" in verify(tmp_path, "--steps", "5", "-q", "main.py").stdout


def test_a_forward_for_nothing_is_found_by_running_alone(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(scripts.SCORING, encoding="utf-8")
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
    (package / "train.py").write_text(scripts.LEAKING, encoding="utf-8")
    done = verify(folder, "--steps", "5", "-q", "-s", "-m", "pkg.train", "9", "--steps=3", "--keep")
    assert "argv ['9', '--steps=3', '--keep']" in done.stdout
    assert "GPU101" in done.stdout


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("raises.py", scripts.MISSHAPEN, "script raised ValueError: a batch of another width after 5 steps"),
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


# -- what is said of real scripts ----------------------------------------------------------------------------


def script(folder: Path, text: str, name: str = "train.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def reported(data: dict[str, Any]) -> tuple[Verification, str, str]:
    """The verification that JSON tells of, as a page and as text."""
    known = {name: value for name, value in data.items() if name not in ("phases", "schema", "version")}
    verification = Verification.from_json(known)
    return verification, write_page(document(verification)), text_of(verification)


def test_micro_batches_are_seen_and_the_run_has_one_peak(tmp_path: Path) -> None:
    script(tmp_path, scripts.ACCUMULATING)
    limits = ("--device", "cpu", "--max-peak", "1GiB", "--baseline", "memory.json", "--write-baseline")
    done = verify(tmp_path, *limits, "-q", "--output-format", "json", "train.py")
    data = json.loads(done.stdout)
    verification, page, terminal = reported(data)
    rank = verification.run.ranks[0]
    steps = [sample for sample in rank.samples if sample.kind == "train" and sample.sampled]
    first, *others, rest = steps[-1].parts
    assert (len(steps), {len(step.parts) for step in steps}) == (20, {5})
    assert all(part.peak > part.allocated for part in (first, *others))
    assert first.peak < others[0].peak == others[-1].peak  # the first one has no gradients beside it
    assert steps[-1].peak == max(part.peak for part in steps[-1].parts)
    assert steps[-1].allocated == rest.allocated

    sampled = max(sample.peak or 0 for sample in rank.samples)
    (check,) = data["gate"]["checks"]
    (entry,) = json.loads((tmp_path / "memory.json").read_text())["peaks"]
    assert check["now"] == max(entry["allocated"], *entry["others"].values()) > sampled
    peak = format_bytes(check["now"])
    assert re.search(rf"\n  peak +{peak} +live tensor storages, in the evaluation\n", terminal)
    assert f"<dt>Peak</dt><dd>{peak}<small>live tensor storages, in the evaluation<" in page
    assert f"{format_bytes(steps[-1].peak)} ┤" in terminal
    assert f" training step {steps[-1].step}, through 4 backwards\n" in terminal
    curve = re.search(r'data-series="allocated" points="([^"]*)"', page)
    number = sum(2 * len(sample.parts) or 1 for sample in rank.samples[1:])
    assert len(curve[1].split()) in (1 + number, 3 + number)  # the line; the area has two corners more


def test_terminal_json_and_page_count_the_same_steps(tmp_path: Path) -> None:
    script(tmp_path, scripts.VALIDATING)
    done = verify(tmp_path, "--steps", "12", "-q", "--output-format", "json", "train.py", status=1)
    data = json.loads(done.stdout)
    training, evaluation = data["phases"]
    assert (training["kind"], training["sampled"], training["warmup"]) == ("train", 12, 3)
    samples = data["run"]["ranks"][0]["samples"]
    assert evaluation["sampled"] == sum(s["kind"] == "eval" and s["sampled"] for s in samples) > 5
    grown = next(one for one in evaluation["figures"] if one["figure"] == "allocated")
    assert (grown["status"], grown["slope"]) == ("growing", 512.0)

    _, page, terminal = reported(data)
    assert f"<dt>Evaluation steps</dt><dd>{evaluation['sampled']}<" in page
    assert "<dt>Training steps</dt><dd>12<" in page
    assert "Memory that would be on the GPU grows by 4.00 KiB an evaluation" in page

    drawn = re.search(r'<script type="application/json">(.*?)</script></figure>', page, re.DOTALL)
    points = json.loads(drawn[1])
    for phase, name in ((training, "training"), (evaluation, "evaluation")):
        kind = phase["kind"]
        series = [sample["allocated"] for sample in samples if sample["kind"] == kind]
        shown = [point for point in points if f"({kind}" in point["text"][0]]
        assert len(shown) == len(series) == phase["steps"]
        assert [point["text"][1] for point in shown] == [f"allocated: {format_bytes(one)}" for one in series]
        said = terminal.partition(f"  {name}: ")[2]
        if len(set(series)) > 1:
            # a plot whose axis ends with the last of these steps, and whose scale with the most
            assert said.index(f"{format_bytes(max(series))} ┤") < said.index(
                f"{name} step {phase['steps']}\n"
            )

    assert "  training: 12 steps sampled after 3 of warm-up\n" in terminal
    assert "+512 B a step" in terminal.partition("evaluation: ")[2].partition("unpredicted")[0]
    assert "training step 15\n" in terminal
    assert "Drift of what would be on the GPU: 4.00 KiB an evaluation." in terminal


def test_a_history_with_a_limit_is_named_harmless(tmp_path: Path) -> None:
    script(tmp_path, scripts.BOUNDED)
    done = verify(tmp_path, "--steps", "12", "-q", "train.py", status=0)
    assert "+16.00 KiB a step" in done.stdout
    line = next(line for line in done.stdout.splitlines() if line.startswith("harmless: "))
    assert "kept by global deque `recent`" in line
    assert "holds at most 100: 1.56 MiB then" in line
    assert re.search(
        r"^0 findings.*\. Drift of what would be on the GPU: 0 B a step\.$", done.stdout, re.MULTILINE
    )


def test_two_findings_on_one_line_each_name_their_own_list(tmp_path: Path) -> None:
    script(tmp_path, scripts.ABREAST)
    done = verify(tmp_path, "--steps", "10", "-q", "train.py")
    holders = [line for line in done.stdout.splitlines() if line.startswith("   = holder:")]
    assert ["`losses`" in holders[0], "`outs`" in holders[1]] == [True, True]
    shared = scripts.ABREAST.replace("outs.append", "losses.append")
    script(tmp_path, shared)
    done = verify(tmp_path, "--steps", "10", "-q", "train.py")
    assert done.stdout.count("; the same growth as GPU101 at column ") == 2


def test_a_prompt_that_nobody_saw_is_told(tmp_path: Path) -> None:
    script(tmp_path, scripts.ASKING)
    pty = pytest.importorskip("pty")
    primary, secondary = pty.openpty()  # a terminal at which nobody answers: it must not be waited for
    command = [sys.executable, "-m", "gpulint", "verify", "-q", "train.py"]
    done = run_linter(command, cwd=tmp_path, stdin=secondary, capture_output=True, text=True, timeout=100)
    os.close(primary)
    os.close(secondary)
    assert done.returncode == 2
    assert "asked for input before its first step, and there was none: 'Really train? [y/N]'" in done.stderr
    assert "--show-output" in done.stderr
    piped = [*command[:-1], "--show-output", "train.py"]
    done = run_linter(piped, cwd=tmp_path, input="yes\n", capture_output=True, text=True, timeout=100)
    assert "Really train? [y/N] answered yes" in done.stdout


def test_options_after_the_script_are_said_to_be_the_scripts(tmp_path: Path) -> None:
    text = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr')\nparser.parse_args()\n"
    script(tmp_path, text)
    said = "gpulint: --steps and --device went to train.py: options of gpulint verify stand before the script"
    done = verify(tmp_path, "train.py", "--steps", "5", "--device=cpu", "--lr", "1", status=2)
    assert done.stderr.splitlines()[0] == said
    quiet = verify(tmp_path, "-q", "train.py", "--steps", "5", "--device=cpu")
    assert quiet.stderr.splitlines()[-1] == said
    assert "went to" not in verify(tmp_path, "train.py", "--lr", "1", "--", "--steps").stderr


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    probe = [python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is not None)"]
    if subprocess.run(probe).returncode:
        pytest.skip("a bare virtual environment has torch here")
    return python


@pytest.mark.parametrize("launch", [[], ["--nproc-per-node", "2"]], ids=["alone", "torchrun"])
def test_an_interpreter_without_torch_is_one_sentence(
    bare_python: Path, tmp_path: Path, launch: list[str]
) -> None:
    script(tmp_path, scripts.CLEAN)
    done = verify(tmp_path, "-q", "--python", str(bare_python), *launch, "train.py", status=2)
    assert done.stderr == (
        f"gpulint: torch is not installed in {bare_python}: install it there (pip install torch), or name the "
        "interpreter that has it with --python; nothing was measured\n"
    )
    assert "Not verified: torch is not installed in" in done.stdout


def test_a_script_that_does_without_torch_where_there_is_none(bare_python: Path, tmp_path: Path) -> None:
    script(tmp_path, "try:\n    import torch\nexcept ImportError:\n    torch = None\n")
    done = verify(tmp_path, "-q", "--python", str(bare_python), "train.py", status=2)
    assert "the script ended without importing torch; torch is not installed in" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_timeout_shows_the_scripts_own_stack(tmp_path: Path) -> None:
    path = script(tmp_path, "import time\n\ndef wait():\n    time.sleep(600)\n\nwait()\n")
    ended = run(Run(str(path), timeout=4.0, capture=True)).end
    assert ended.reason == "timeout"
    assert ended.traceback.splitlines()[0] == "Traceback (most recent call last):"
    assert [line for line in ended.traceback.splitlines() if line.startswith("  File")] == [
        f'  File "{path}", line 6, in <module>',
        f'  File "{path}", line 4, in wait',
    ]

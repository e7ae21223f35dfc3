"""What `gpulint verify` says of real scripts: steps by kind, harmless growth, prompts, misplaced options, a missing
torch, and tracebacks without its own frames."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from made import text_of

sys.path.insert(0, str(Path(__file__).parent))

from scripts import ABREAST, ACCUMULATING, ASKING, BOUNDED, CLEAN, VALIDATING
from test_verify_cli import verify
from warm import run_linter

from gpulint.reports.page import page as write_page
from gpulint.reports.verify import document
from gpulint.runtime.parent.runner import Run, run
from gpulint.runtime.parent.verdict import Verification
from gpulint.units import format_bytes

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


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
    script(tmp_path, ACCUMULATING)
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
    script(tmp_path, VALIDATING)
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
    script(tmp_path, BOUNDED)
    done = verify(tmp_path, "--steps", "12", "-q", "train.py", status=0)
    assert "+16.00 KiB a step" in done.stdout
    line = next(line for line in done.stdout.splitlines() if line.startswith("harmless: "))
    assert "kept by global deque `recent`" in line
    assert "holds at most 100: 1.56 MiB then" in line
    assert re.search(
        r"^0 findings.*\. Drift of what would be on the GPU: 0 B a step\.$", done.stdout, re.MULTILINE
    )


def test_two_findings_on_one_line_each_name_their_own_list(tmp_path: Path) -> None:
    script(tmp_path, ABREAST)
    done = verify(tmp_path, "--steps", "10", "-q", "train.py")
    holders = [line for line in done.stdout.splitlines() if line.startswith("   = holder:")]
    assert ["`losses`" in holders[0], "`outs`" in holders[1]] == [True, True]
    shared = ABREAST.replace("outs.append", "losses.append")
    script(tmp_path, shared)
    done = verify(tmp_path, "--steps", "10", "-q", "train.py")
    assert done.stdout.count("; the same growth as GPU101 at column ") == 2


def test_a_prompt_that_nobody_saw_is_told(tmp_path: Path) -> None:
    script(tmp_path, ASKING)
    pty = pytest.importorskip("pty")
    primary, secondary = pty.openpty()  # a terminal at which nobody answers: it must not be waited for
    command = [sys.executable, "-m", "gpulint", "verify", "-q", "train.py"]
    done = run_linter(command, cwd=tmp_path, stdin=secondary, capture_output=True, text=True, timeout=100)
    os.close(primary)
    os.close(secondary)
    assert done.returncode == 2
    assert (
        "the script asked for input before its first step, and there was none: 'Really train? [y/N]'"
        in done.stderr
    )
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
    if subprocess.run(probe, check=False).returncode:
        pytest.skip("a bare virtual environment has torch here")
    return python


@pytest.mark.parametrize("launch", [[], ["--nproc-per-node", "2"]], ids=["alone", "torchrun"])
def test_an_interpreter_without_torch_is_one_sentence(
    bare_python: Path, tmp_path: Path, launch: list[str]
) -> None:
    script(tmp_path, CLEAN)
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
    assert ended.traceback is not None
    assert ended.traceback.splitlines()[0] == "Traceback (most recent call last):"
    assert [line for line in ended.traceback.splitlines() if line.startswith("  File")] == [
        f'  File "{path}", line 6, in <module>',
        f'  File "{path}", line 4, in wait',
    ]

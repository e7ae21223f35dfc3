"""What several test modules share: running the real command, and sources with known findings."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import warm

# One GPU101 in row 11, with a safe fix.
HELD = """\
import torch
from torch import nn


def train(model: nn.Module, loader, criterion, optimizer):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        total += loss
        optimizer.step()
    return total
"""
HELD_ROW = 11
STREAMS = ("stdin", "stdout", "stderr")
CLEAN = "import torch\n\nprint(torch.zeros(3).sum())\n"

# A rule of a project that does what a broken one would.
OWN_RULE = '''
import os, signal, time
from gpulint import Rule, Severity


class Misbehaving(Rule):
    """Fails."""

    code = "OWN001"
    name = "misbehaving"
    severity = Severity.INFO
    triggers = ((b"misbehave",),)

    def claims(self, asked, options):
        if "misbehave" in asked.file.text:
            {action}
        return iter(())
'''

# Arguments for fixtures that would take seconds of each of their many runs.
_LESS = {
    "distill_teacher": ("--batch-size", "4", "--steps", "6"),
    "cache_clearing_loop": ("--batch-size", "4"),
    "clear_memory_helper": ("--hidden", "8"),
    "evaluate_with_metrics": ("--epochs", "1"),
    "feature_extraction": ("--epochs", "1", "--images", "160"),
    "gan_undetached": ("--steps", "20"),
    "half_precision_scoring": ("--vocabulary", "2000", "--width", "64", "--batches", "8"),
    "model_sweep": ("--steps", "6", "--batch-size", "8"),
    "train": ("--epochs", "1"),  # the project
}


def less_to_do(fixture: Path) -> tuple[str, ...]:
    """Arguments with which a fixture is done sooner, and does the same."""
    return _LESS.get(fixture.stem, ())


def environment(**changes: str | None) -> dict[str, str]:
    """The test's environment without what would change the command's output; None takes a variable out."""
    neutral: dict[str, str | None] = {
        "NO_COLOR": None,
        "FORCE_COLOR": None,
        "CLICOLOR": None,
        "CLICOLOR_FORCE": None,
        "GPULINT_CONFIG": None,
        "GPULINT_NO_CACHE": None,
        "GPULINT_OUTPUT_FILE": None,
        "GPULINT_OUTPUT_FORMAT": None,
        "COLUMNS": None,
        "GITHUB_OUTPUT": None,
        "GITHUB_STEP_SUMMARY": None,
    }
    merged = {**os.environ, **neutral, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def gpulint(
    *arguments: str | Path,
    cwd: Path,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    timeout: float = 120,
    status: int | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run the installed command in a process of its own, which must end with this status."""
    command = [sys.executable, "-m", "gpulint", *map(str, arguments)]
    given = {"cwd": cwd, "input": stdin, "env": env or environment(), "timeout": timeout}
    done = warm.run_linter(command, capture_output=True, **given)
    assert status is None or done.returncode == status, done
    return done


def run_command(*command: Any, status: int | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """What any command says, in a process of its own, which must end with this status."""
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, **options)
    assert status is None or done.returncode == status, done
    return done


def as_text(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """`gpulint`, with what it says decoded."""
    done = gpulint(*arguments, **options)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def findings(*arguments: str | Path, cwd: Path, **options: Any) -> list[dict[str, Any]]:
    """What the command finds, as its JSON has it."""
    done = gpulint(*arguments, "--output-format", "json", cwd=cwd, **options)
    assert done.returncode in (0, 1, 2), done
    return json.loads(done.stdout)


def codes(*arguments: str | Path, cwd: Path, **options: Any) -> list[tuple[str, str, int]]:
    """File name, code and row of each finding."""
    return [
        (Path(item["filename"]).name, item["code"], item["location"]["row"])
        for item in findings(*arguments, cwd=cwd, **options)
    ]


def on_terminal(*arguments: str, cwd: Path, columns: int = 80, **variables: str) -> str:
    """What the command writes when its standard output is a terminal of so many columns."""
    import fcntl
    import pty
    import select
    import struct
    import termios

    main_end, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**environment(), "TERM": "xterm-256color", **variables}
    command, streams = [sys.executable, "-m", "gpulint", *arguments], dict.fromkeys(STREAMS, terminal)
    process = warm.LinterPopen(command, cwd=cwd, env=env, **streams)
    os.close(terminal)
    written = b""
    while select.select([main_end], [], [], 60)[0]:
        try:
            part = os.read(main_end, 65536)
        except OSError:
            break
        if not part:
            break
        written += part
    process.wait()
    os.close(main_end)
    return written.decode()


def misbehaving(project: Path, action: str, files: int = 0) -> None:
    """Write a rule that does this where a file says so, and so many files that do."""
    (project / "lint").mkdir()
    (project / "lint/own.py").write_text(OWN_RULE.format(action=action))
    (project / "gpulint.toml").write_text('rules = ["lint"]\nextend-exclude = ["lint"]\n')
    for number in range(files):
        (project / f"bad{number}.py").write_text("misbehave = 1\n" + "x = 1\n" * 3000)


def notebook(*sources: str, **metadata: Any) -> str:
    """A notebook with these cells of code."""
    return json.dumps(book(*map(code_cell, sources), metadata=metadata))


def book(*cells: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a notebook with these cells is as data."""
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}


def code_cell(source: Any, **more: Any) -> dict[str, Any]:
    """A cell of a notebook, whose source is a text or its lines."""
    empty = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    return {**empty, "source": source, **more}


def sources(into: Path, *more: str) -> Path:
    """A copy of what gpulint is built from, and of more of its checkout."""
    root = Path(__file__).parents[1]
    unmade = shutil.ignore_patterns("__pycache__")
    for folder in ("gpulint", "rules"):
        shutil.copytree(root / folder, into / folder, symlinks=True, ignore=unmade)
    for name in ("pyproject.toml", "README.md", "LICENSE", *more):
        shutil.copy(root / name, into / name)
    return into

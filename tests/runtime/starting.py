"""How tests of the verifier start a script, without pytest."""

from pathlib import Path
from textwrap import dedent
from typing import Any

from gpulint.runtime.parent.runner import Run, run
from gpulint.runtime.record.result import RunResult

ENVIRONMENT = {"OMP_NUM_THREADS": "1"}
NO_GPU = {**ENVIRONMENT, "CUDA_VISIBLE_DEVICES": ""}


def write(folder: Path, text: str, name: str = "train.py") -> str:
    """Write a script; its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return str(path)


def start(target: str, *arguments: str, **options: Any) -> RunResult:
    """Run it to its end, or for so long."""
    return run(
        Run(target, arguments, **{"capture": True, "timeout": 100.0, "environment": ENVIRONMENT, **options})
    )

"""What is found does not depend on the order of sets, which changes with the seed of each process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support import environment

ROOT = Path(__file__).parents[1]
SEEDS = ("0", "1", "2", "3")


def test_findings_are_the_same_in_every_process(tmp_path: Path) -> None:
    programs = [
        *sorted(ROOT.glob("fixtures/*.py"))[::15],
        *sorted(ROOT.glob("tests/cases/*/*_bug_*.py"))[::100],
    ]
    for path in programs:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    flag = "-P" if sys.version_info >= (3, 11) else "-B"
    options = "check --isolated --no-cache --jobs 1 --confidence low --output-format json --exit-zero ."
    command = [sys.executable, flag, "-m", "gpulint", *options.split()]
    started = [
        subprocess.Popen(command, cwd=tmp_path, env=environment(PYTHONHASHSEED=seed), stdout=subprocess.PIPE)
        for seed in SEEDS
    ]
    first, *others = [json.loads(process.communicate(timeout=100)[0]) for process in started]
    assert len(first) > len(programs) / 2
    assert all(other == first for other in others)

"""The run whose report the site shows: measured once and kept as data, drawn whenever the site is built.

`python docs/example_run.py` runs the demo's script under the verifier anew (it needs torch) and writes the data.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from gpulint.reports.page import page as written
from gpulint.reports.verify import document
from gpulint.runtime.parent.verdict import Verification

ROOT: Final = Path(__file__).parent.parent
SCRIPT: Final = ROOT / "fixtures/evaluate_with_metrics.py"
DATA: Final = ROOT / "benchmarks/results/example-run.json"
_FOLDER: Final = "/project"  # stands for the folder of the run in the data


def script() -> str:
    """The script that was run: as a person would have it, without the marks that tests read."""
    return re.sub(r"  # expect: .*", "", SCRIPT.read_text(encoding="utf-8"))


def report() -> str:
    """The page that `gpulint verify --report` writes about the run."""
    with _project() as folder:
        data = json.loads(DATA.read_text(encoding="utf-8").replace(_FOLDER, folder))
        page = written(document(Verification.from_json(data)))
    assert folder not in page, "the report names the folder that it was drawn in"
    return page


def measure() -> dict[str, Any]:
    """Run the script, and give what the verifier writes as JSON, without this machine's paths."""
    with _project() as folder:
        command = [
            sys.executable,
            "-m",
            "gpulint",
            "verify",
            "--quiet",
            "--output-format",
            "json",
            "train.py",
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode != 1:
        raise RuntimeError(f"{command} ended with {done.returncode}")
    data: dict[str, Any] = json.loads(done.stdout.replace(folder, _FOLDER))
    data["run"]["command"] = ["python", "train.py"]
    for rank in data["run"]["ranks"]:
        rank["environment"]["executable"] = "python"
    return data


@contextmanager
def _project() -> Iterator[str]:
    """A folder with the script in it, which is the working directory meanwhile."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as made:
        folder = os.path.realpath(made)
        Path(folder, "train.py").write_text(script(), encoding="utf-8")
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


if __name__ == "__main__":
    DATA.write_text(json.dumps(measure(), separators=(",", ":")) + "\n", encoding="utf-8")

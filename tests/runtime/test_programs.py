"""Every leak is found and its holder named; no benign program raises an alarm. On the CPU, and on CUDA where there is one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))
from expectations import EACH, LEAKS, check, reason_to_skip  # noqa: E402
from starting import start  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def measured(path: Path) -> None:
    reason = reason_to_skip(path)
    if reason is not None:
        pytest.skip(reason)
    check(path, start(str(path), device=DEVICE), DEVICE)


@pytest.mark.usefixtures("warm_scripts")
@pytest.mark.parametrize(
    "path", EACH, ids=[f"{'leak' if path in LEAKS else 'benign'}-{path.stem}" for path in EACH]
)
def test_what_is_found_is_what_the_head_says(path: Path) -> None:
    measured(path)


@pytest.mark.parametrize("name", ["loss_held_after_backward", "loader_workers_spawn"])
def test_as_a_user_runs_it(name: str) -> None:
    (path,) = (path for path in EACH if path.stem == name)
    measured(path)

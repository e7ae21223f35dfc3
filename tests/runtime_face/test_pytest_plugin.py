"""The pytest plugin, run by pytest itself on small suites."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import warm

NO_GPU = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

HEAD = """
import pytest
import torch
from torch import nn

torch.manual_seed(0)

def training(steps, keep):
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in range(steps):
        out = model(torch.randn(8, 64))
        loss = out.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if keep:
            history.append(loss)
    assert len(history) == (steps if keep else 0)
"""


SUITE = """
@pytest.mark.gpu_memory(max_drift="0B", steps=10)
def test_clean_training():
    training(16, keep=False)

@pytest.mark.gpu_memory(max_drift="0B", steps=10)
def test_leaking_training():
    training(16, keep=True)

@pytest.mark.gpu_memory(max_drift="1KiB", steps=10)
def test_leak_that_is_allowed():
    training(16, keep=True)

def test_fixture(gpu_memory):
    mine = []
    for number in gpu_memory.steps(14):
        mine.append(torch.ones(256) * number)
    assert gpu_memory.drift == 1024
    with pytest.raises(pytest.fail.Exception, match="mine"):
        gpu_memory.assert_no_drift()
    gpu_memory.assert_no_drift("2KiB")

@pytest.mark.gpu_memory(steps=10)
def test_that_fails_by_itself():
    assert 1 == 2
"""


@needs_torch
def test_suites_that_keep_and_that_do_not(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(HEAD + SUITE, encoding="utf-8")
    command = "-m pytest -q -p no:cacheprovider -p gpulint.pytest_plugin".split()
    env = {**os.environ, **NO_GPU, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = {"capture_output": True, "text": True, "timeout": 200, "check": False}
    done = warm.run_torch([sys.executable, *command], cwd=tmp_path, env=env, **run)
    out = done.stdout
    assert "2 failed, 3 passed" in out, out[-4000:] + done.stderr[-2000:]
    assert "assert 1 == 2" in out
    assert "list `history` in `training()`" in out
    assert "512 B a step stay on the GPU, 0 B are allowed" in out


def test_collection_does_not_import_torch(tmp_path: Path) -> None:
    code = "import sys, gpulint.pytest_plugin; raise SystemExit('torch' in sys.modules or 'libcst' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=tmp_path).returncode == 0

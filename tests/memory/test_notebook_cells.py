"""A cell's figures on a card (the conftest's), and what may go wrong around it."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gpulint.memory.notebook import extension

MIB = 1024**2


@pytest.fixture
def shell() -> Any:
    return SimpleNamespace(user_ns={}, user_ns_hidden={}, last_execution_result=None, compile=None)


@pytest.fixture
def on_card(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    return cuda


def test_allocated_peak_and_reserved(on_card: Any, shell: Any) -> None:
    on_card.alloc(40 * MIB)
    cell = extension.Cell(shell)
    on_card.free(on_card.alloc(100 * MIB))
    on_card.alloc(4 * MIB)
    shell.user_ns["x"] = torch.ones(MIB)
    head, left, held, freed = cell.lines()
    assert "cuda:0 allocated 40.00 MiB -> 44.00 MiB (+4.00 MiB), peak 140.00 MiB" in head
    assert "reserved 40.00 MiB -> 140.00 MiB" in head
    assert (left, freed) == ("  left by this cell: 4.00 MiB", "  freed by this cell: nothing")
    assert held.endswith(f"float32[{MIB}]: `x`")


def test_a_cell_that_is_the_first_to_use_cuda(on_card: Any, shell: Any) -> None:
    on_card.started = False
    cell = extension.Cell(shell)
    on_card.started = True
    on_card.alloc(8 * MIB)
    shell.user_ns["x"] = torch.ones(2 * MIB)
    head, left, *_ = cell.lines()
    assert "cuda:0 allocated 0 B -> 8.00 MiB (+8.00 MiB), peak 8.00 MiB" in head
    assert left == "  left by this cell: 8.00 MiB"


def test_memory_that_no_place_leads_to(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)  # another test may have used a GPU
    cell = extension.Cell(shell)
    unseen = torch.ones(MIB)  # a local of this test is no place of the notebook
    told = "\n".join(cell.lines())
    assert f"float32[{unseen.numel()}]: nothing in the notebook: torch's C++ code, or a library" in told


def test_a_notebook_without_torch() -> None:
    pytest.importorskip("IPython")
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "for cell in ('%load_ext gpulint', '%%gpu_memory\\nx = 1', '%gpu_memory', '%gpu_memory clear', '1/0', 'print(x)'):\n"
        "    shell.run_cell(cell, store_history=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.count("gpu_memory: torch is not installed in this environment") == 2
    assert "nothing to clear on a GPU: torch is not installed" in done.stdout
    assert done.stdout.rstrip().endswith("1")
    assert "Traceback" not in done.stderr

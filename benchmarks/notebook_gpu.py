"""Notebooks on a real card: what a failed cell keeps, and when it lets go; what `%%gpu_memory` says beside torch's figures.

    python benchmarks/notebook_gpu.py [--out results.json] [--device cpu]

Runs cells in IPython's own shell, with and without `%load_ext gpulint`, each case in a process of its own. Needs torch and IPython.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from functools import partial
from typing import Any

from _parts import run_sections

# A forward of which 1 GiB is alive when it fails, deep inside.
START = """
import torch, os, signal, threading, time
DEVICE = os.environ["BENCHMARK_DEVICE"]
SIZE = 16 * 1024 if DEVICE == "cuda" else 512
class Net(torch.nn.Module):
    def forward(self, fail):
        x = torch.ones(SIZE, SIZE // 4, device=DEVICE)
        y = x * 2
        z = self.deep(y, fail)
        return z
    def deep(self, y, fail):
        a = y.relu(); b = a + y
        fail()
        return b
def no():
    raise RuntimeError("no")
def stop():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    time.sleep(30)
def oom():
    torch.empty(2**42, device=DEVICE)
net = Net()
"""
FAILURES = {"raises": "net(no)", "interrupted": "net(stop)", "out of memory": "net(oom)"}


class Session:
    """A shell, what its cells print, and torch's figure after each."""

    def __init__(self, extension: bool) -> None:
        from IPython.core.interactiveshell import InteractiveShell

        self.shell = InteractiveShell.instance()
        self.log: list[dict[str, Any]] = []
        if extension:
            self.run("%load_ext gpulint")
        self.run(START)

    def run(self, cell: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            result = self.shell.run_cell(cell, store_history=True)
        text = re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue())
        error = result.error_in_exec or result.error_before_exec
        entry = {
            "cell": cell[:200],
            "allocated": allocated(),
            "error": None if error is None else type(error).__name__,
        }
        self.log.append({**entry, "printed": text[-3000:]})
        del result, error
        return text


def allocated() -> int:
    """Bytes; without a card, of the live tensors."""
    import torch

    if torch.cuda.is_initialized():
        return int(torch.cuda.memory_allocated())
    from gpulint.memory.notebook import storages

    return sum(one.bytes for one in storages(torch.device("cpu")).values())


def failing(extension: bool, failure: str) -> list[dict[str, Any]]:
    session = Session(extension)
    session.run(FAILURES[failure])
    session.run("pass")
    session.run("import gc; _ = gc.collect()")
    session.run(
        "import sys\nfor name in ('last_type', 'last_value', 'last_traceback', 'last_exc'):\n    sys.__dict__.pop(name, None)\n_ = gc.collect()"
    )
    session.run("from gpulint import memory; print(memory.clear())")
    return session.log


def reports() -> list[dict[str, Any]]:
    """What the magics say, to be compared with torch's own figures beside them."""
    session = Session(True)
    session.run("%%gpu_memory\nmodel = torch.nn.Linear(8192, 8192, device=DEVICE)\nhistory = []")
    session.run(
        "%%gpu_memory\nfor _ in range(3):\n    history.append(model(torch.ones(4096, 8192, device=DEVICE)).sum())"
    )
    session.run("%%gpu_memory\nhistory[-1].backward()")
    session.run("%%gpu_memory\ndel history")
    session.run("%%gpu_memory\nmodel.weight * 2")
    session.run("%gpu_memory")
    session.run("%gpu_memory clear")
    session.run("%gpu_memory clear out")
    return session.log


SECTIONS = {
    f"{kind}: {failure}": partial(failing, kind == "with", failure)
    for failure in FAILURES
    for kind in ("without", "with")
} | {"reports": reports}


if __name__ == "__main__":
    sys.exit(run_sections("notebook", __file__, __doc__, SECTIONS, 100))

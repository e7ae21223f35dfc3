"""Host memory of the processes that a script starts, as a user sees it."""

import json
import subprocess
import sys

import pytest
import starting
from support import run_command

torch = pytest.importorskip("torch")

from gpulint.runtime.observing.hostmemory import Relatives  # noqa: E402

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the memory of other processes")

PROGRAM = """
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Boxes(Dataset):
    def __init__(self):
        self.{kept}

    def __len__(self):
        return 160_000

    def __getitem__(self, index):
        return {read}


def main():
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-9)
    for boxes in DataLoader(Boxes(), batch_size=256, shuffle=True, num_workers=2):
        loss = net(boxes).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""
OBJECTS = (
    'infos = [{"box": [float(i), 1.0, 2.0, 3.0], "name": str(i)} for i in range(160_000)]',
    'torch.tensor(self.infos[index]["box"])',
)
ARRAY = ("boxes = np.ones((160_000, 4), np.float32)", "torch.from_numpy(self.boxes[index])")


@linux
@pytest.mark.parametrize(("program", "grows"), [(OBJECTS, True), (ARRAY, False)], ids=["objects", "array"])
def test_workers_that_copy_what_they_read_grow(program, grows, tmp_path):
    starting.write(tmp_path, PROGRAM.format(kept=program[0], read=program[1]))
    command = "-m gpulint verify -q --output-format json train.py".split()
    found = json.loads(run_command(sys.executable, *command, cwd=tmp_path, status=0).stdout)
    workers = [one for one in found["host_growth"] if one["who"] == "DataLoader worker"]
    assert [one["number"] for one in workers] == ([2] if grows else [])
    assert all(one["per_step"] > 100_000 for one in workers)


@linux
def test_another_process_is_told_by_its_command():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        relatives = Relatives()
        relatives.step(1)  # not read: between the readings
        for step in (3, 6):
            relatives.step(step)
    finally:
        child.kill()
        child.wait()
    one = next(one for one in relatives.figures() if one.pid == child.pid)
    assert not one.loader
    assert "time.sleep" in one.name
    assert one.steps == (3, 6)
    assert all(size > 0 for size in one.sizes)


# Where there is no GPU the worker does by hand what torch does when CUDA is first used.
USES_CUDA = """
import torch
from torch.utils.data import DataLoader, Dataset


def use_cuda():
    if torch.cuda.is_available():
        return torch.zeros(1, device="cuda").cpu()
    for call, *_ in torch.cuda._queued_calls:
        if call.__name__ == "tell":
            call()
    return torch.zeros(1)


class Numbers(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return use_cuda() if index == 0 else torch.zeros(1)


if __name__ == "__main__":
    net = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-9)
    for x in DataLoader(Numbers(), batch_size=4, num_workers=1, multiprocessing_context="CONTEXT"):
        loss = net(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.usefixtures("warm_scripts")
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_worker_that_uses_the_gpu_is_named_with_its_line(context, tmp_path):
    script = starting.write(tmp_path, USES_CUDA.replace("CONTEXT", context))
    found = starting.start(script, steps=5)
    assert found.end.reason == "stopped", found.stderr
    (one,) = found.contexts
    line = 8 if torch.cuda.is_available() else 11
    assert (one.file, one.line, one.function) == (script, line, "use_cuda")
    assert len(found.ranks) == 1

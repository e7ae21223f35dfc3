"""Several processes under torchrun, on gloo: every rank samples, the parent merges, a leak names its rank."""

from pathlib import Path

import pytest
import starting

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch was built without torch.distributed", allow_module_level=True)

PARALLEL = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = {wrap}(nn.Linear(32, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
kept = []
for step in range(1000):
    loss = model(torch.randn(16, 32)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {leak}
print("never")
"""


def start(tmp_path: Path, leak: str, wrap: str = "DistributedDataParallel"):
    path = starting.write(tmp_path, PARALLEL.replace("{leak}", leak).replace("{wrap}", wrap))
    launch = "--nproc-per-node 2 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0".split()
    return starting.start(path, steps=12, launch=tuple(launch), environment=starting.NO_GPU)


@pytest.mark.usefixtures("nothing_left")
def test_a_leak_on_one_rank_names_the_rank(tmp_path):  # under DDP too: gate/test_gate_runs.py
    result = start(tmp_path, "if rank == 1: kept.append(loss.detach())", "fully_shard")
    assert result.end.reason == "stopped", result.stderr
    assert "never" not in result.stdout
    assert [(rank.rank, rank.world_size) for rank in result.ranks] == [(0, 2), (1, 2)]
    assert all(rank.steps("train") == 12 for rank in result.ranks)
    (leak,) = result.ranks[1].leaks()
    assert leak.bytes_per_step == 512
    assert result.ranks[0].drifts == ()
    assert "global list `kept`" in result.ranks[1].holders[0].text


@pytest.mark.usefixtures("warm_scripts")
def test_an_error_on_one_rank_is_told_with_its_traceback(tmp_path):
    result = start(tmp_path, "if rank == 1 and step == 6: raise ValueError('bad batch')")
    assert result.end.reason == "raised"
    assert "rank 1" in result.end.message
    assert "ValueError: bad batch" in result.end.message
    assert "bad batch" in result.stderr

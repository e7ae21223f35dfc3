"""Both are loaded to the host."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForCausalLM


def main(folder, loader):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = AutoModelForCausalLM.from_pretrained("gpt2-xl").cuda(rank)
    where = torch.device("cpu")
    model.load_state_dict(torch.load(os.path.join(folder, "weights.pt"), where))
    model = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    moments = torch.load(os.path.join(folder, "optimizer.pt"), map_location=where)
    optimizer.load_state_dict(moments)
    for step, ids in enumerate(loader):
        loss = model(input_ids=ids.cuda(rank), labels=ids.cuda(rank)).loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 1000 == 0 and rank == 0:
            torch.save(model.module.state_dict(), os.path.join(folder, "weights.pt"))
            torch.save(optimizer.state_dict(), os.path.join(folder, "optimizer.pt"))

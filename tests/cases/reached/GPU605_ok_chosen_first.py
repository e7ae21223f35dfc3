"""The card is chosen first, or by each place by itself; or for other processes."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def by_number(rank):
    torch.cuda.init()
    torch.cuda.manual_seed_all(0)
    torch.cuda.empty_cache()
    generator = torch.Generator(device="cuda")
    dist.barrier(device_ids=[rank])
    print(torch.cuda.get_device_name(), generator)
    model = nn.Linear(64, 64).to(f"cuda:{rank}")
    weights = torch.ones(10, device=rank).cuda(rank)
    torch.cuda.set_device(rank)
    return model, weights


def within(local_rank):
    with torch.cuda.device(local_rank):
        model = nn.Linear(64, 64).cuda()
    torch.cuda.set_device(local_rank)
    return model


def worker(rank, size):
    torch.cuda.set_device(rank)
    return nn.Linear(64, 64).cuda()


def start():
    if torch.cuda.is_available() and torch.cuda.device_count() > 1:
        mp.spawn(worker, args=(2,), nprocs=2)

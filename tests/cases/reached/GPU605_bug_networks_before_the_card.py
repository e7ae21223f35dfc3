"""Each rank puts its network on the first card, and says only then which card is its own."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def build():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)).cuda()


def choose():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)  # expect: GPU605
    return rank


def main():
    dist.init_process_group("nccl")
    model = build()
    rank = choose()
    model = DistributedDataParallel(model.to(rank), device_ids=[rank])
    return model


def worker(args):
    device = torch.device("cuda")
    weights = torch.ones(10).to(device)
    torch.cuda.set_device(args.local_rank)  # expect: GPU605
    return weights.cuda()


def after_a_barrier(args):
    dist.barrier()
    torch.cuda.set_device(args.local_rank)  # expect: GPU605
    return nn.Linear(8, 8).cuda()


if __name__ == "__main__":
    main()

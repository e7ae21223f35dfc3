"""Where a process group has begun each process loads by itself; where none has, there is but one, and it lets go of it at once."""

import torch
import torch.distributed as dist
from torch import nn


def resumed(network, path):
    if not dist.is_initialized():
        network.load_state_dict(torch.load(path))  # low: GPU403
    else:
        dist.barrier()
        network.load_state_dict(torch.load(path))  # expect: GPU403
    return network


def main(path, rank, loader):
    dist.init_process_group("nccl")
    network = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)).to(rank)
    network = nn.parallel.DistributedDataParallel(resumed(network, path), device_ids=[rank])
    optimizer = torch.optim.Adam(network.parameters())
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(images.to(rank)), labels.to(rank)).backward()
        optimizer.step()
    if rank == 0:
        torch.save(network.module.state_dict(), path)


if __name__ == "__main__":
    main("weights.pt", 0, [])

"""Loads that each process of several runs, whatever is asked about processes around them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Engine:
    def __init__(self, network: nn.Module, options):
        self.options = options
        self.distributed = options.world_size > 1
        self.local_rank = options.local_rank
        self.network = network.cuda(self.local_rank)
        self.optimizer = torch.optim.AdamW(self.network.parameters())
        if self.distributed:
            dist.init_process_group("nccl")
            self.network = DistributedDataParallel(self.network, device_ids=[self.local_rank])

    def save(self, path):
        torch.save({"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}, path)

    def restore_optimizer(self, path, rank):
        if rank == 0:
            print("restored from", path)
        states = torch.load(path)  # expect: GPU403
        self.optimizer.load_state_dict(states["optimizer"])

"""Loads that only one process of several runs: the first, or the only one there is. The others say where their copy goes."""

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

    def restore_optimizer(self, path):
        if self.distributed:
            states = torch.load(path, map_location=f"cuda:{self.local_rank}")
        else:
            states = torch.load(path)
        self.optimizer.load_state_dict(states["optimizer"])

    def restore_on_the_first(self, path, rank=0):
        if rank <= 0:
            self.network.load_state_dict(torch.load(path)["network"])  # low: GPU403

    def restore_unless_another(self, path, rank):
        if rank != 0:
            return
        self.network.load_state_dict(torch.load(path)["network"])  # low: GPU403

    def restore_alone(self, path):
        if dist.is_initialized() and dist.get_world_size() > 1:
            return
        self.optimizer.load_state_dict(torch.load(path)["optimizer"])

"""The checkpoint is loaded to the GPU that the constructor has chosen."""

import torch
from torch import nn


class Resumable:
    def __init__(self, rank, network: nn.Module):
        self.device = torch.device(f"cuda:{rank}")
        self.network = network.to(self.device)
        self.optimizer = torch.optim.AdamW(self.network.parameters())

    def resume(self, path):
        state = torch.load(path, map_location=self.device)  # low: GPU403
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        return state["epoch"]

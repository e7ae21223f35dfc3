"""`cat(…).numpy()` without a `.cpu()` on the way: nothing of it is on a GPU, whoever else has one."""

import torch
from torch import nn


class Forecaster:
    def __init__(self, net: nn.Module, use_gpu=False):
        self.net = net
        self.device = "cuda" if use_gpu else None

    @torch.no_grad()
    def predict(self, loader):
        self.net.eval()
        found = []
        for x, _ in loader:
            found.append(self.net(x))
        return torch.cat(found, dim=0).view(-1, found[0].shape[-1]).numpy()

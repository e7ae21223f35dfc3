"""The cache of a method of a network keeps the network."""

from functools import lru_cache

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    @lru_cache(maxsize=8)  # low: GPU106
    def grid(self, n):
        return torch.arange(n, device=self.scale.device)

    def forward(self, x):
        return x + self.scale * self.grid(x.shape[1])[:, None]

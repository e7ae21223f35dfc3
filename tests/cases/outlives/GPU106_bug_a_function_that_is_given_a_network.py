"""A cache that has networks among its keys keeps them; one that asks each object for its own does not."""

from functools import cached_property, lru_cache

import torch
from torch import nn


@lru_cache(maxsize=32)  # low: GPU106
def width(net: nn.Module):
    return sum(weight.numel() for weight in net.parameters())


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4096, 4096)

    @lru_cache  # low: GPU106
    def positions(self, length):
        return torch.arange(length, device=self.inner.weight.device)

    @cached_property
    def width(self):
        return self.inner.weight.numel()

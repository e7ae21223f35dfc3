"""The cache is a static method's: no object is a key."""

from functools import cached_property, lru_cache

import torch
from torch import nn


class Positions(nn.Module):
    @staticmethod
    @lru_cache(maxsize=8)
    def rows(n):
        return list(range(n))

    @cached_property
    def places(self):
        return torch.arange(16)

    def forward(self, x):
        return x + self.places.to(x.device)[: x.shape[1], None]

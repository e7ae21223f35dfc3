import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base, paths):
        super().__init__()
        self.base = base
        self.paths = nn.ModuleDict(paths)
        self.merged = []

    def forward(self, x):
        return self.base(x)

    def merge(self, names):
        weight = self.base.weight.data.clone()
        for name in names:
            scale = self.paths[name]().to(weight.dtype)
            weight += self.base.weight.data * scale
        if not torch.isfinite(weight).all():
            raise ValueError("not finite")
        self.base.weight.data = weight
        self.merged += names

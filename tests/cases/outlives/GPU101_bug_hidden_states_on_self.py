import torch
from torch import nn


class Probe(nn.Module):
    def __init__(self, backbone: nn.Module, dim: int):
        super().__init__()
        self.backbone = backbone
        self.linear = nn.Linear(dim, 2)
        self.seen = []

    def forward(self, x):
        h = self.backbone(x)
        self.seen.append(h)  # expect: GPU101
        return self.linear(h)

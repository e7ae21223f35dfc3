"""A network of some thousand weights: what it takes for a moment in float32, nobody misses."""

import torch
from torch import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 128)
        self.outer = nn.Linear(128, 8)

    def forward(self, x):
        return self.outer(self.inner(x).relu())


def scores(rows):
    net = Small().cuda().half()
    with torch.no_grad():
        return net(rows.cuda().half()).cpu()

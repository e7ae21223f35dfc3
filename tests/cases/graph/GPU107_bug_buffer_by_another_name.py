"""A buffer takes in what a layer makes, by a name of its own and of what is worked out before."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        y = self.fc(x)
        mean = self.mean
        mean.lerp_(y.mean(0), 0.1)  # expect: GPU107
        newer = 0.9 * self.spread + 0.1 * y.std(0)
        self.spread.copy_(newer)  # expect: GPU107
        return y

"""What a layer makes is cut before a buffer takes it in, by a name of its own."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        y = self.fc(x)
        seen = y.detach()
        mean = self.mean
        mean.lerp_(seen.mean(0), 0.1)
        newer = 0.9 * self.mean + 0.1 * seen.std(0)
        self.mean.copy_(newer)
        return y

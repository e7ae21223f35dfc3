"""A normalizer of raw data, which has no graph to keep."""

import torch
from torch import nn


class Whitener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("center", torch.zeros(width))

    def forward(self, observations):
        mu = observations.mean(0)
        self.center[:] = 0.99 * self.center + 0.01 * mu
        return observations - self.center

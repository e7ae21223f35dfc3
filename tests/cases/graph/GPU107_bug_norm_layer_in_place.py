"""Normalizing layers that write their running statistics in place, with the graph of the batch."""

import torch
from torch import nn


class ChannelNorm(nn.Module):
    def __init__(self, channels, rate=0.05):
        super().__init__()
        self.rate = rate
        self.gain = nn.Parameter(torch.ones(channels))
        self.register_buffer("center", torch.zeros(channels))
        self.register_buffer("spread", torch.ones(channels))

    def forward(self, x):
        if not self.training:
            return (x - self.center) / self.spread * self.gain
        mu, sigma = x.mean(0), x.std(0)
        self.center.mul_(1 - self.rate).add_(mu * self.rate)  # expect: GPU107
        self.spread[:] = self.spread * (1 - self.rate) + sigma * self.rate  # expect: GPU107
        return (x - mu) / sigma * self.gain


class Centered(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("center", torch.zeros(channels))

    def forward(self, x):
        out, mu = subtract_mean(x)
        self.center[:] = 0.9 * self.center + 0.1 * mu  # expect: GPU107
        return out


def subtract_mean(x):
    mu = x.float().mean(dim=0)
    return x - mu, mu


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.center = Centered(width)
        self.norm = ChannelNorm(width)

    def forward(self, x):
        return self.norm(self.center(self.project(x)))

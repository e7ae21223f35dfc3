"""The same layers with the statistics cut off, and a normalizer of raw data, which has no graph to keep."""

import torch
from torch import nn


class ChannelNorm(nn.Module):
    def __init__(self, channels, rate=0.05):
        super().__init__()
        self.rate = rate
        self.gain = nn.Parameter(torch.ones(channels))
        self.register_buffer("center", torch.zeros(channels))
        self.register_buffer("spread", torch.ones(channels))
        self.register_buffer("seen", torch.zeros(channels))

    def forward(self, x):
        mu, sigma = x.mean(0), x.std(0)
        if self.training:
            self.center.mul_(1 - self.rate).add_(mu.detach() * self.rate)
            self.seen = 0.9 * self.seen + 0.1 * (x > 0).sum(0)
            with torch.no_grad():
                self.spread[:] = self.spread * (1 - self.rate) + sigma * self.rate
        return (x - mu) / sigma * self.gain


class Whitener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("center", torch.zeros(width))

    def forward(self, observations):
        mu = observations.mean(0)
        self.center[:] = 0.99 * self.center + 0.01 * mu
        return observations - self.center

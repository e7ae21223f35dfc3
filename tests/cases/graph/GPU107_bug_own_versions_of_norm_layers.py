"""Norm layers of a project's own that keep torch's running statistics: what they are given has a graph."""

import torch
from torch import nn


class GhostNorm(nn.BatchNorm2d):
    def forward(self, x):
        if not self.training:
            return super().forward(x)
        mean, var = x.mean(dim=(0, 2, 3)), x.var(dim=(0, 2, 3))
        self.running_mean = 0.9 * self.running_mean + 0.1 * mean  # expect: GPU107
        self.running_var.mul_(0.9).add_(0.1 * var)  # expect: GPU107
        return (x - mean[:, None, None]) / (var[:, None, None] + self.eps).sqrt()


class SparseNorm(nn.modules.batchnorm._BatchNorm):
    def forward(self, features):
        filled = features.abs().sum(1).nonzero().squeeze(-1)
        rows = features.permute(0, 2, 1).contiguous().view(-1, self.num_features)[filled]
        if self.training:
            centre = rows.mean(0, keepdim=True)
            spread = ((rows - centre) ** 2).mean(0, keepdim=True)
            self.running_var = (1 - self.momentum) * self.running_var + self.momentum * spread.reshape(-1)  # expect: GPU107
        else:
            spread = self.running_var.reshape(1, -1)
        return features / spread.sqrt()[..., None]


class StyleNorm(nn.InstanceNorm1d):
    def __init__(self, channels):
        super().__init__(channels, track_running_stats=True)
        self.shift = nn.Linear(64, channels)

    def forward(self, input, style):
        level = input.mean((0, 2))
        self.running_mean[:] = 0.99 * self.running_mean + 0.01 * level  # expect: GPU107
        return (input - level[:, None]) * self.shift(style)[..., None]

"""Norm layers of a project's own whose running statistics are made without a graph, and one that keeps none."""

import torch
from torch import nn


class GhostNorm(nn.BatchNorm2d):
    def forward(self, x):
        mean, var = x.mean(dim=(0, 2, 3)), x.var(dim=(0, 2, 3))
        if self.training:
            with torch.no_grad():
                self.running_mean = 0.9 * self.running_mean + 0.1 * mean
            self.running_var.mul_(0.9).add_(0.1 * var.detach())
            self.num_batches_tracked += 1
        return (x - mean[:, None, None]) / (var[:, None, None] + self.eps).sqrt()


class SyncedNorm(nn.BatchNorm1d):
    def forward(self, features):
        level = features.data.mean(0)
        self.running_mean = 0.9 * self.running_mean + 0.1 * level
        self.running_var = torch.lerp(self.running_var, features.detach().var(0), 0.1)
        return features - level


class Scaled(nn.BatchNorm1d):
    def forward(self, features):
        scale = features.std(0)
        self.seen = 0.5
        return features / scale

"""A measure that keeps numbers and a window in a buffer has nothing to train: on data it makes no graph."""

import torch
import torch.nn.functional as F
from torch import nn


class Similarity(nn.Module):
    def __init__(self, width=11, averaged=True):
        super().__init__()
        self.width = width
        self.averaged = averaged
        self.channels = 1
        self.register_buffer("window", self._window(width, self.channels))

    def _window(self, width, channels):
        return torch.ones(channels, 1, width, width) / width**2

    def forward(self, one, other):
        channels = one.size()[1]
        if channels != self.channels:
            window = self._window(self.width, channels).type_as(one)
            self.window = window
            self.channels = channels
        return F.conv2d(one, self.window, groups=channels) - F.conv2d(other, self.window, groups=channels)


class Report:
    def __init__(self):
        self.pairs = []
        self.similarity = Similarity(averaged=False).eval().to("cuda")

    def add(self, one, other):
        self.pairs.append((one.detach(), other.detach()))

    def evaluate(self):
        return [self.similarity(one, other).mean().item() for one, other in self.pairs]

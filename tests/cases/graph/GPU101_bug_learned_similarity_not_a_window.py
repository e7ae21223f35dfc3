"""A metric whose network has nothing but a window, given what was detached when it was kept."""

import numpy as np
import torch
from elsewhere import detached, to_numpy
from torch import nn
from torch.nn import functional as F


class Similarity(nn.Module):
    def __init__(self, size=11, average=True):
        super().__init__()
        self.size = size
        self.average = average
        self.channels = 1
        self.register_buffer("window", self._window(size, self.channels))

    def forward(self, first, second):
        channels = first.size()[1]
        if channels == self.channels:
            window = self.window
        else:
            window = self._window(self.size, channels).type_as(first)
            self.window = window
            self.channels = channels
        means = F.conv2d(first, window, groups=channels), F.conv2d(second, window, groups=channels)
        return (means[0] * means[1]).mean()

    def _window(self, size, channels):
        return torch.ones(channels, 1, size, size) / size**2


class Learned(nn.Module):
    def __init__(self, size=11):
        super().__init__()
        self.size = size
        self.body = nn.Conv2d(3, 8, size)

    def forward(self, first, second):
        return (self.body(first) - self.body(second)).abs().mean()


class Metric:
    def __init__(self):
        self.pairs = []
        self.similarity = Similarity(average=False).eval()
        self.learned = Learned().cuda().eval()

    def add(self, first, second):
        self.pairs.append((detached(first), detached(second)))

    def evaluate(self):
        found = []
        for first, second in self.pairs:
            found.append(self.similarity(first, second))
        return np.mean(to_numpy(found))

    def distance(self):
        found = []
        for first, second in self.pairs:
            found.append(self.learned(first, second))  # expect: GPU101, GPU201
        return torch.stack(found).mean().item()

"""The same statistics cut off from the graph, or of what has none."""

import torch
from torch import nn


class Plain(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.register_buffer("count", torch.zeros(width))
        self.fc = nn.Linear(width, width)
        self.frozen = nn.Linear(width, width).requires_grad_(False)

    def forward(self, x):
        y = self.fc(x)
        self.mean = 0.9 * self.mean + 0.1 * y.detach().mean(0)
        self.count += 0.1 * ((y > 0).float().mean(0) - self.count)
        with torch.no_grad():
            self.spread.mul_(0.9).add_(0.1 * y.std(0))
        return y


class Measured(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        with torch.no_grad():
            z = self.fc(x)
        self.mean.lerp_(z.mean(0), 0.1)
        y = self.fc(x)
        self.spread = torch.lerp(self.spread, y.std(0), 0.1)
        self.spread = self.spread.detach()
        return y


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        y = self.fc(x)
        mixed = 0.5 * x + 0.5 * y.mean(0)
        return mixed * self.scale


class EachSequence(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.trace = None
        self.fc = nn.Linear(width, width)

    def forward(self, steps):
        self.trace = torch.zeros(1)
        y = self.fc(steps)
        self.trace = 0.9 * self.trace + 0.1 * y.mean(0)
        return self.trace


class Emptied(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("trace", torch.zeros(width))
        self.fc = nn.Linear(width, width)

    def reset(self):
        self.trace = torch.zeros_like(self.trace)

    def forward(self, x):
        y = self.fc(x)
        self.trace = 0.9 * self.trace + 0.1 * y.mean(0)
        return y


@torch.no_grad()
def read(norm: Plain, loader):
    for x in loader:
        norm(x.cuda())

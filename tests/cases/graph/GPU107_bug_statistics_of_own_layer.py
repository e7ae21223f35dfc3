"""Statistics of what a module's own layer makes, in the spellings that programs use."""

import torch
from torch import nn


class Plain(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        y = self.fc(x)
        self.mean = 0.9 * self.mean + 0.1 * y.mean(0)  # expect: GPU107
        return y


class InPlace(Plain):
    def forward(self, x):
        y = self.fc(x)
        self.mean.mul_(0.9).add_(0.1 * y.mean(0))  # expect: GPU107
        return y


class Lerp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        y = self.fc(x)
        self.mean.lerp_(y.mean(0), 0.1)  # expect: GPU107
        self.spread = torch.lerp(self.spread, y.std(0), 0.1)  # expect: GPU107
        return y


class Steps(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.register_buffer("top", torch.ones(width))
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        y = self.fc(x)
        if self.training:
            self.mean += 0.1 * (y.mean(0) - self.mean)  # expect: GPU107
            self.spread.copy_(0.9 * self.spread + 0.1 * y.std(0))  # expect: GPU107
            self.top.add_(0.1 * (y.amax(0) - self.top))  # expect: GPU107
        return y

"""A network whose constructor sets its layers two at a time, or from a generator."""

import torch
from torch import nn


class Twin(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.trunk, self.head = nn.Linear(width, width), nn.Linear(width, 4)

    def forward(self, x):
        return self.head(self.trunk(x))


class Stack(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = (nn.Linear(width, width) for _ in range(2))

    def forward(self, x):
        return self.second(self.first(x))


def scores(loader):
    twin, stack = Twin(8).cuda(), Stack(8).cuda()
    kept, more = [], []
    with torch.no_grad():
        for x in loader:
            kept.append(twin(x.cuda()))  # low: GPU102
            more.append(stack(x.cuda()))  # low: GPU102
    return torch.cat(kept).cpu(), torch.cat(more).cpu()

"""Outputs of the project's own network are collected, and nothing ever looks at them."""

import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mean, self.spread = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        mean = self.mean(x)
        return mean, mean + self.spread(x).exp()


class Runner:
    def __init__(self):
        self.coder = Coder(8).cuda()

    def count(self, loader):
        self.coder.eval()
        codes, seen = [], 0
        with torch.no_grad():
            for x in loader:
                mean, code = self.coder(x.cuda())
                codes.append(code)  # low: GPU102
                seen += int((mean > 0).sum())
        return seen

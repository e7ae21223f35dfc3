"""A constant that is found with the first batch, and never again."""

import torch
from torch import nn


class Contrast(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.register_buffer("settings", torch.tensor([0.07, -1.0, -1.0]))
        self.register_buffer("memory", torch.randn(size, width))

    def forward(self, mine, theirs, index):
        temperature = self.settings[0].item()
        known = self.settings[1].item()
        rows = self.memory[index].detach()
        one = torch.exp(rows @ mine.t() / temperature)
        other = torch.exp(rows @ theirs.t() / temperature)
        if known < 0:
            self.settings[1] = one.mean() * self.memory.size(0)
            known = self.settings[1].clone().detach().item()
        if self.settings[2] < 0:
            self.settings[2] = other.mean() * self.memory.size(0)
        return one / known, other / self.settings[2].item()

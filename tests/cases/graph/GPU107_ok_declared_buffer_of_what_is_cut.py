"""A buffer that the class declares has no graph of its own, and what it takes in has been cut."""

import torch
from torch import nn


class Extremes(nn.Module):
    least: torch.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("least", torch.tensor(float("inf")))
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        y = self.fc(x)
        least = torch.min(y.detach().min(), self.least)
        self.least.copy_(least)
        return y

"""What comes in is data, or cut before it is taken in."""

import torch
import torch.nn.functional as F
from torch import nn


class Normalised(nn.Module):
    def __init__(self, width, decay=0.99):
        super().__init__()
        self.decay = decay
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, observation):
        if self.training:
            found = torch.mean(observation, dim=0)
            self.mean.mul_(self.decay).add_(found, alpha=1 - self.decay)  # maybe: GPU107
        return observation - self.mean.detach()


class Cut(nn.Module):
    def __init__(self, codes, width, decay=0.99):
        super().__init__()
        self.codes, self.decay = codes, decay
        self.register_buffer("table", torch.randn(codes, width))
        self.register_buffer("sums", self.table.clone())

    def forward(self, z):
        flat = z.detach()
        nearest = torch.cdist(flat, self.table).argmin(1)
        chosen = F.one_hot(nearest, self.codes).float()
        if self.training:
            moved = torch.matmul(chosen.t(), flat)
            self.sums.mul_(self.decay).add_(moved, alpha=1 - self.decay)
        found = self.table[nearest]
        return z + (found - z).detach()

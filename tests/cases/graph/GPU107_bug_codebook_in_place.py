"""Codebooks whose sums take in what the encoder gives; each sets that against something detached, to train the encoder."""

import torch
import torch.nn.functional as F
from torch import nn


class Flattening(nn.Module):
    def flattened(self, z):
        order = (0, 2, 3, 1)
        moved = z.permute(*order).contiguous()
        return moved.view(-1, moved.shape[-1]), order


class InLoss(Flattening):
    def __init__(self, codes, width, decay=0.99):
        super().__init__()
        self.codes, self.decay = codes, decay
        self.register_buffer("table", torch.randn(codes, width))
        self.register_buffer("sums", self.table.clone())

    def forward(self, z: torch.Tensor):
        flat, order = self.flattened(z)
        nearest = torch.cdist(flat, self.table).argmin(1)
        chosen = F.one_hot(nearest, self.codes).type(flat.dtype)
        if self.training:
            moved = torch.matmul(chosen.t(), flat)
            self.sums.mul_(self.decay).add_(moved, alpha=1 - self.decay)  # expect: GPU107
        found = torch.matmul(chosen, self.table).view_as(z)
        return found, F.mse_loss(found.detach(), z)


class InSquare(nn.Module):
    def __init__(self, codes, width, decay=0.99):
        super().__init__()
        self.codes, self.decay = codes, decay
        self.register_buffer("table", torch.randn(codes, width))
        self.register_buffer("sums", self.table.clone())

    def forward(self, z):
        nearest = torch.cdist(z, self.table).argmin(1)
        chosen = F.one_hot(nearest, self.codes).float()
        if self.training:
            moved = torch.matmul(chosen.t(), z)
            self.sums.mul_(self.decay).add_(moved, alpha=1 - self.decay)  # expect: GPU107
        found = self.table[nearest]
        return found, torch.mean((found.detach() - z) ** 2)


class StraightThrough(nn.Module):
    def __init__(self, codes, width, decay=0.99):
        super().__init__()
        self.codes, self.decay = codes, decay
        self.register_buffer("table", torch.randn(codes, width))
        self.register_buffer("sums", self.table.clone())

    def forward(self, z):
        nearest = torch.cdist(z, self.table).argmin(1)
        chosen = F.one_hot(nearest, self.codes).float()
        if self.training:
            moved = torch.matmul(chosen.t(), z)
            self.sums.mul_(self.decay).add_(moved, alpha=1 - self.decay)  # expect: GPU107
        found = self.table[nearest]
        return z + (found - z).detach()

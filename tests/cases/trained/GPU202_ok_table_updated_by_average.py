"""Vector quantisation: the table is no parameter that wants gradients, or saves nothing but indices; the straight-through
estimator leaves it out of the graph under the table's own name."""

import torch
from torch import nn


class Table(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, width), requires_grad=False)

    def forward(self, index):
        return nn.functional.embedding(index, self.weight)


class Quantiser(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.table = Table(size, width).cuda()
        self.plain = nn.Embedding(size, width).cuda()

    def forward(self, z):
        index = torch.cdist(z, self.table.weight).argmin(1)
        found = self.table(index).view(z.shape)
        loss = nn.functional.mse_loss(found.detach(), z)
        found = z + (found - z).detach()
        return found, loss

    def nearest(self, z):
        index = torch.cdist(z, self.plain.weight.detach()).argmin(1)
        found = self.plain(index)
        found = z + (found - z).detach()
        loss = found.square().mean()
        loss.backward()
        return loss.item()

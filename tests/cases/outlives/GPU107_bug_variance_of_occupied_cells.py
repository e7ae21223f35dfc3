"""A normalisation keeps its running variance by hand: it takes in the batch's, with the graph of all that came before."""

import torch
from torch import nn


class OccupiedNorm(nn.Module):
    def __init__(self, width, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x):
        cells = x.flatten(0, -2)
        occupied = cells[cells.abs().sum(-1) > 0]
        if self.training:
            centre = occupied.mean(0, keepdim=True)
            spread = ((occupied - centre) ** 2).mean(0)
            self.running_var = (1 - self.momentum) * self.running_var + self.momentum * spread  # expect: GPU107
        else:
            spread = self.running_var
        return x / (spread + self.eps).sqrt() * self.weight

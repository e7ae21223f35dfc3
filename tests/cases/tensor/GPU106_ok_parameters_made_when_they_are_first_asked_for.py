"""Weights that a cell makes for each shape when it is first asked for: leaves, which are meant to stay."""

import torch
from torch import nn


class Weights:
    def __init__(self, cell: nn.Module):
        self.cell = cell
        self.made = {}

    def of(self, shape):
        if shape not in self.made:
            weights = nn.Parameter(torch.empty(*shape, device="cuda"))
            nn.init.xavier_normal_(weights)
            self.made[shape] = weights
            self.cell.register_parameter(f"weights_{shape}", weights)
        return self.made[shape]

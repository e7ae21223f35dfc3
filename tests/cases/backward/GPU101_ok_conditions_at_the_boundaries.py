"""The boundary conditions of one loss, summed over the boundaries and returned to whoever trains."""

import torch
from torch import nn


class HeatLoss(nn.Module):
    def __init__(self, field: nn.Module, boundaries, conductivity=0.1):
        super().__init__()
        self.field, self.boundaries, self.conductivity = field, boundaries, conductivity

    def slope(self, points):
        points = points.requires_grad_(True)
        value = self.field(points)
        (slope,) = torch.autograd.grad(value.sum(), points, create_graph=True)
        return value, slope, points

    def forward(self, inside):
        value, slope, points = self.slope(inside)
        (second,) = torch.autograd.grad(slope[:, 0].sum(), points, create_graph=True)
        residual = (slope[:, 1] - self.conductivity * second[:, 0]).pow(2).mean()
        boundary = torch.zeros((), device=inside.device)
        for points, normal, wanted in self.boundaries:
            _, slope, _ = self.slope(points.to(inside.device))
            boundary += torch.mean(torch.square((slope * normal.to(inside.device)).sum(1) - wanted))
        return residual + 10 * boundary

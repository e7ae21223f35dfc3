"""The same loss, whose boundary terms are added to a sum of the object that is only ever printed."""

import torch
from torch import nn


class HeatLoss(nn.Module):
    def __init__(self, field: nn.Module, boundaries, conductivity=0.1):
        super().__init__()
        self.field, self.boundaries, self.conductivity = field, boundaries, conductivity
        self.boundary_sum = 0.0

    def slope(self, points):
        points = points.requires_grad_(True)
        value = self.field(points)
        (slope,) = torch.autograd.grad(value.sum(), points, create_graph=True)
        return value, slope, points

    def forward(self, inside):
        value, slope, points = self.slope(inside)
        residual = (slope[:, 1] - value.squeeze(-1)).pow(2).mean()
        for points, normal, wanted in self.boundaries:
            _, slope, _ = self.slope(points.to(inside.device))
            term = torch.mean(torch.square((slope * normal.to(inside.device)).sum(1) - wanted))
            self.boundary_sum += term  # note: GPU101
            residual = residual + 10 * term
        return residual


def train(loss: HeatLoss, loader, steps):
    loss.cuda()
    opt = torch.optim.Adam(loss.field.parameters())
    for step, inside in zip(range(steps), loader):
        value = loss(inside.cuda())
        opt.zero_grad()
        value.backward()
        opt.step()
    print("boundary", float(loss.boundary_sum) / steps)

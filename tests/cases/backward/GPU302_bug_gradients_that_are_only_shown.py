"""Gradients with a graph of their own, of which only pictures and numbers are made: directly, and by way of a helper."""

import torch
from torch import nn


class Field(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net.cuda()

    def forward(self, points):
        return self.net(points)

    def slope(self, points):
        values = self.net(points)
        return torch.autograd.grad(values.sum(), points, create_graph=True, retain_graph=True)[0]

    def draw(self, points, log):
        slopes = self.slope(points.requires_grad_())  # expect: GPU302
        log(slopes.detach().cpu().numpy())

    def loss(self, points, normals):
        return (self.slope(points.requires_grad_()) - normals).square().mean()


def normals(net, points):
    points.requires_grad_()
    slopes = torch.autograd.grad(net(points).sum(), points, create_graph=True)[0]  # expect: GPU302
    return slopes.detach().cpu().numpy()

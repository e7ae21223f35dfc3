"""Gradients with a graph of their own that are differentiated once more, or go into a loss."""

import torch


def curvature(net, points):
    points.requires_grad_()
    slopes = torch.autograd.grad(net(points).sum(), points, create_graph=True)[0]
    second = torch.autograd.grad(slopes.sum(), points)[0]
    return second.detach().cpu().numpy()


def penalty(net, points):
    points.requires_grad_()
    slopes = torch.autograd.grad(net(points).sum(), points, create_graph=True)[0]
    return (slopes.norm(dim=1) - 1).square().mean()

"""The log-density of a posterior, whose gradient a walker of another file takes; the flag's default leaves grad on."""
# file: posterior.py
import torch
from torch import nn


class Posterior:
    def __init__(self, net: nn.Module, x, y, scale=1.0):
        self.net, self.scale = net.cuda().eval(), scale
        self.x, self.y = x.cuda(), y.cuda()

    def log_density(self, track_gradients=True):
        with torch.set_grad_enabled(track_gradients):
            fit = -nn.functional.mse_loss(self.net(self.x), self.y, reduction="sum")
            prior = -sum(p.pow(2).sum() for p in self.net.parameters()) / (2 * self.scale)
            return fit + prior
# file: walker.py
import torch


def leap(posterior, size):
    weights = list(posterior.net.parameters())
    for weight, slope in zip(weights, torch.autograd.grad(posterior.log_density(), weights)):
        weight.data.add_(slope, alpha=size)
    return posterior.log_density(track_gradients=False).item()

"""The same flag is left at its default where the log-density is only read as a number."""
# file: posterior.py
import torch
from torch import nn


class Posterior:
    def __init__(self, net: nn.Module, x, y, scale=1.0):
        self.net, self.scale = net.cuda().eval(), scale
        self.x, self.y = x.cuda(), y.cuda()

    def log_density(self, track_gradients=True):
        with torch.set_grad_enabled(track_gradients):
            fit = -nn.functional.mse_loss(self.net(self.x), self.y, reduction="sum")  # expect: GPU201@n
            prior = -sum(p.pow(2).sum() for p in self.net.parameters()) / (2 * self.scale)
            return fit + prior
# file: walker.py
import torch


def jump(posterior, size):
    before = posterior.log_density().item()  # expect: GPU201@n
    weights = list(posterior.net.parameters())
    old = [w.detach().clone() for w in weights]
    for w in weights:
        w.data.add_(torch.randn_like(w), alpha=size)
    if torch.rand(()).log().item() > posterior.log_density().item() - before:  # expect: GPU201@n
        for w, o in zip(weights, old):
            w.data.copy_(o)
    return before

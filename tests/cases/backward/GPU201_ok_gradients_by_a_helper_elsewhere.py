"""A sampler by gradients: the helper of another file differentiates the energy that it is given."""
# file: sample.py
import torch

from langevin import walk


def energies(net: torch.nn.Module, starts, steps):
    net.cuda().eval()
    found = []
    for start in starts:
        point = start.cuda().requires_grad_(True)
        for _ in range(steps):
            energy = net(point).sum()
            point = walk(energy, point)
        found.append(energy.item())
    return found
# file: langevin.py
import torch


def walk(energy, point, size=1e-2):
    (slope,) = torch.autograd.grad(energy, point)
    noise = torch.randn_like(point) * (2 * size) ** 0.5
    return (point - size * slope + noise).detach().requires_grad_(True)

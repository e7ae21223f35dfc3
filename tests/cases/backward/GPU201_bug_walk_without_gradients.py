"""The helper of another file takes a step that does not look at the energy's gradient."""
# file: sample.py
import torch

from metropolis import walk


def energies(net: torch.nn.Module, starts, steps):
    net.cuda().eval()
    found = []
    for start in starts:
        point = start.cuda()
        for _ in range(steps):
            energy = net(point).sum()  # expect: GPU201
            point = walk(energy, point)
        found.append(energy.item())
    return found
# file: metropolis.py
import torch


def walk(energy, point, size=1e-2):
    if torch.rand(()).item() < torch.exp(-energy).item():
        return point + size * torch.randn_like(point)
    return point

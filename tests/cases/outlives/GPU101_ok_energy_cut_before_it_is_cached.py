"""The sampler of the same program keeps numbers, or what it has cut off first."""
# file: dynamics/leap.py
import torch


def leap(position, momentum, energy_of, size, steps):
    for _ in range(steps):
        position, momentum, energy = half_and_half(position, momentum, energy_of, size)
    return position, momentum, energy


def half_and_half(position, momentum, energy_of, size):
    slope, energy = slope_and_energy(energy_of, position + size * momentum)
    return position + size * momentum, momentum - size * slope, energy


def slope_and_energy(energy_of, position):
    position = position.detach().requires_grad_(True)
    energy = energy_of(position)
    (slope,) = torch.autograd.grad(energy, position)
    return slope, energy  # low: GPU101
# file: sampler.py
import torch
from dynamics.leap import leap


class Sampler:
    def __init__(self, network, size=0.01):
        self.network, self.size = network.cuda(), size
        self.energies = []

    def draw(self, position):
        momentum = torch.randn_like(position)
        new, momentum, energy = leap(position, momentum, self.network, self.size, 20)
        energy = energy.item()
        self.energies.append(energy)
        return new

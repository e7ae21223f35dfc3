"""An energy whose gradient was taken goes back through three functions and two files, and stays with the sampler."""
# file: dynamics/leap.py
import torch


def leap(position, momentum, energy_of, size, steps):
    for _ in range(steps):
        position, momentum, energy = half_and_half(position, momentum, energy_of, size)
    return position, momentum, energy


def half_and_half(position, momentum, energy_of, size):
    slope, _ = slope_and_energy(energy_of, position)
    momentum = momentum - 0.5 * size * slope
    position = position + size * momentum
    slope, energy = slope_and_energy(energy_of, position)
    return position, momentum - 0.5 * size * slope, energy


def slope_and_energy(energy_of, position):
    position = position.detach().requires_grad_(True)
    energy = energy_of(position)
    (slope,) = torch.autograd.grad(energy, position)
    return slope, energy  # expect: GPU101
# file: sampler.py
import torch
from dynamics.leap import leap


class Sampler:
    def __init__(self, network, size=0.01):
        self.network, self.size = network.cuda(), size
        self._last = None

    def _remember(self, position, energy):
        self._last = position, energy
        self._energy = energy

    def draw(self, position):
        momentum = torch.randn_like(position)
        new, momentum, energy = leap(position, momentum, self.network, self.size, 20)
        self._remember(new, energy)
        return new

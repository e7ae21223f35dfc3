"""The networks take forces in their forward, and switch grad on for that: without grad around it they work as well."""

# file: networks.py
import torch
from torch import nn


def with_grad_where_needed(method):
    return method


class Potential(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, 1))

    @torch.enable_grad()
    def energy_of(self, positions):
        return self.body(positions).sum()

    def forward(self, positions):
        positions.requires_grad_(True)
        energy = self.energy_of(positions)
        forces = -torch.autograd.grad(energy, positions, create_graph=self.training)[0]
        return energy, forces


class Invariant(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, positions):
        with torch.enable_grad():
            positions.requires_grad_(True)
            energy = self.body(positions).sum()
            return energy, torch.autograd.grad(energy, positions)[0]
# file: trainer.py
import torch


class Trainer:
    def __init__(self, model, loader):
        self.model = model.cuda()
        self.opt = torch.optim.Adam(self.model.parameters())
        self.loader = loader

    def train(self):
        self.model.train()
        for batch in self.loader:
            energy = self.apply(batch)
            self.opt.zero_grad()
            energy.pow(2).mean().backward()
            self.opt.step()

    def apply(self, batch):
        return self.model(batch.cuda())[0]

    def predict(self, loader):
        self.model.eval()
        energies = []
        for batch in loader:
            energy = self.apply(batch)  # expect: GPU201
            energies.extend(energy.tolist())
        return energies

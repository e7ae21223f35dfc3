"""The network takes forces in its forward and leaves grad as it is: without grad around it, it raises."""

# file: networks.py
import torch
from torch import nn


class Potential(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, positions):
        positions.requires_grad_(True)
        energy = self.body(positions).sum()
        return energy, torch.autograd.grad(energy, positions, create_graph=self.training)[0]
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
            energy = self.apply(batch)  # low: GPU201
            energies.extend(energy.tolist())
        return energies

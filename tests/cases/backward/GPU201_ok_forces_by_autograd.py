import numpy as np
import torch
from torch import nn


class Calculator:
    def __init__(self, model: nn.Module, convert, device="cuda"):
        self.model, self.convert, self.device = model.to(device).eval(), convert, device

    def calculate(self, atoms):
        found = self.model(self.convert(atoms).to(self.device))
        energy = found["energy"].detach().cpu().numpy()
        forces = found["forces"].detach().cpu().numpy()
        return energy, np.asarray(forces)


class Dynamics:
    def __init__(self, model: nn.Module):
        self.model = model

    @torch.enable_grad()
    def __call__(self, positions):
        found = self.model(positions.detach())
        return found["out"].sum().detach(), found["grad"].detach()

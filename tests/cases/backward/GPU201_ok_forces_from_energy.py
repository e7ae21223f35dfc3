import torch
from torch import nn


def evaluate(potential: nn.Module, loader, device):
    """Forces are derivatives of the energy, so the forward needs a graph in evaluation as well."""
    potential.eval()
    mae_e = mae_f = 0.0
    for batch in loader:
        pos = batch["pos"].to(device).requires_grad_(True)
        energy = potential(batch["z"].to(device), pos, batch["idx"].to(device))
        forces = -torch.autograd.grad(energy.sum(), pos)[0]
        mae_e += (energy.detach() - batch["e"].to(device)).abs().mean().item()
        mae_f += (forces - batch["f"].to(device)).abs().mean().item()
    return mae_e / len(loader), mae_f / len(loader)

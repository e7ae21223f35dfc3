import numpy as np
import torch
from torch import nn


class References(nn.Module):
    def __init__(self, energies):
        super().__init__()
        self.register_buffer("energies", torch.tensor(energies))

    def forward(self, x):
        return torch.matmul(x, self.energies)


def mean_and_deviation(loader, energies):
    references = References(np.asarray(energies)).cuda()
    found = []
    for batch in loader:
        expected = references(batch.x)
        found.append((batch.y - expected) / batch.n)
    found = torch.cat(found)
    return found.mean().item(), found.std().item()

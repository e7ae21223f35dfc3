import torch
from torch import nn


class Indexer:
    def __init__(self, encoder: nn.Module, device="cuda:0"):
        self.encoder = encoder.eval().to(device)
        self.device = device
        self.bank = []
        self.names = []

    @torch.no_grad()
    def add(self, batch, names):
        z = self.encoder(batch.to(self.device))
        self.bank.append(nn.functional.normalize(z, dim=-1))  # low: GPU102
        self.names.extend(names)

    def build(self, loader):
        for batch, names in loader:
            self.add(batch, names)
        return torch.cat(self.bank).cpu(), self.names

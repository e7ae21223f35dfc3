"""A function keeps what it makes where its callers ask it to, and those who do have switched grad off."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module):
        self.model = model
        self.seen = []

    def loss(self, x, y, keep=False):
        out = self.model(x)
        if keep:
            self.seen.append(out)
        return nn.functional.mse_loss(out, y)

    def train(self, loader, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            self.loss(x, y).backward()
            optimizer.step()

    def test(self, loader):
        with torch.no_grad():
            for x, y in loader:
                print(self.loss(x, y, keep=True).item())
        return torch.cat(self.seen)

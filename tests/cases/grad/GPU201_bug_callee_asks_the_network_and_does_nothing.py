"""The callee asks for the mode, for another reason than grad."""

import torch
import torch.nn.functional as F
from torch import nn


def forward_pass(model: nn.Module, batch, criterion, noise=0.1):
    x, y = batch[0].cuda(), batch[1].cuda()
    if model.training:
        x = x + noise * torch.randn_like(x)
    out = model(x)
    loss = criterion(out, y)
    return loss, (out.argmax(1) == y).sum().item()


@torch.no_grad()
def statistics(loader):
    return torch.stack([x.mean() for x, _ in loader])


class Trainer:
    def __init__(self, model, loader, held_out):
        self.model = model.cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.loader = loader
        self.held_out = held_out

    def train(self):
        self.model.train()
        for batch in self.loader:
            loss, _ = forward_pass(self.model, batch, F.cross_entropy)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def validate(self):
        self.model.eval()
        total, right = 0.0, 0
        for batch in self.held_out:
            loss, found = forward_pass(self.model, batch, F.cross_entropy)  # expect: GPU201
            total += loss.item()
            right += found
        return total / len(self.held_out), right

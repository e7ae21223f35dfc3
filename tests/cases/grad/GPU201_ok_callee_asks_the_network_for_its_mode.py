"""A step that training and validation share switches grad off where the network is not in training mode."""

import torch
import torch.nn.functional as F
from torch import nn


def forward_pass(model: nn.Module, batch, criterion):
    x, y = batch[0].cuda(), batch[1].cuda()
    if model.training:
        out = model(x)
    else:
        with torch.no_grad():
            out = model(x)
    loss = criterion(out, y)
    return loss, (out.argmax(1) == y).sum().item()


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
            loss, found = forward_pass(self.model, batch, F.cross_entropy)
            total += loss.item()
            right += found
        return total / len(self.held_out), right

    def _scores(self, x):
        if not self.model.training:
            with torch.no_grad():
                return self.model(x)
        return self.model(x)

    def scores(self):
        self.model.eval()
        found = []
        for x, _ in self.held_out:
            found.append(self._scores(x.cuda()).softmax(-1).cpu())
        return torch.cat(found)

"""Slots that a loss is made of, slots of a module's result, and slots that get detached values."""

import torch
import torch.nn.functional as F
from torch import nn


class Heads(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(count))

    def forward(self, x):
        found = torch.zeros(len(self.heads), x.shape[0], device=x.device)
        for number, head in enumerate(self.heads):
            found[number] = head(x).squeeze(1)
        return found


def train(network: nn.Module, loader, optimizer):
    record = torch.zeros(len(loader))
    for number, (x, parts) in enumerate(loader):
        losses = torch.zeros(len(parts))
        for position, y in enumerate(parts):
            losses[position] = F.cross_entropy(network(x), y)  # maybe: GPU303
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        record[number] = losses.mean().detach()
    return record


def once(network: nn.Module, samples, optimizer):
    scores = torch.zeros(len(samples))
    for number, sample in enumerate(samples):
        scores[number] = network(sample).mean()
    loss = F.softplus(-scores).mean()
    loss.backward()
    optimizer.step()

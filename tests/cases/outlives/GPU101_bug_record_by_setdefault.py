"""A record of the file appends to lists that `setdefault` makes."""

import torch
from torch import nn


class Record:
    def __init__(self):
        self.columns = {}

    def write(self, **values):
        for name, value in values.items():
            self.columns.setdefault(name, []).append(value)

    def mean(self, name):
        return sum(self.columns[name]) / len(self.columns[name])


def validate(network: nn.Module, loader):
    record = Record()
    network.eval()
    for x, y in loader:
        scores = network(x.cuda())  # maybe: GPU201
        loss = nn.functional.cross_entropy(scores, y.cuda())
        record.write(loss=loss, size=len(x))  # expect: GPU101
    return record.mean("loss")


def train(network: nn.Module, loader, optimizer):
    kept = {}
    for kind, x, y in loader:
        loss = nn.functional.cross_entropy(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.setdefault(kind, []).append(loss)  # expect: GPU101
    return {kind: torch.stack(losses).mean() for kind, losses in kept.items()}

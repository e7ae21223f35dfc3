"""A criterion that is one of two, and out of sight, gives its loss and something beside it, a term or a count: of that it is
not shown that it is a tensor."""

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.sum = 0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n


def train(loader, model: nn.Module, criterion, optimizer):
    losses, beside = Meter(), Meter()
    for x, y in loader:
        out = model(x.cuda())
        loss, other = criterion(out, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss)  # expect: GPU101|GPU104
        beside.update(other)  # low: GPU101


def train_one(loader, model: nn.Module, criterion, optimizer):
    losses = Meter()
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss)  # expect: GPU101|GPU104

"""An evaluation collects what the network gives with its graphs, and makes a loss of all of it that is only read."""

import torch
from torch import nn


def evaluate(model: nn.Module, loader, criterion: nn.CrossEntropyLoss):
    outputs, targets = [], []
    for x, y in loader:
        outputs.append(model(x.cuda()))  # expect: GPU101  # expect: GPU201
        targets.append(y.cuda())
    loss = criterion(torch.cat(outputs), torch.cat(targets))
    return loss.item()

"""A number of each parameter of a network is as many waits as it has parameters; of those that a name says, it may be one."""

import torch
from torch import nn


def shaken(model: nn.Module, name):
    for key, weight in model.named_parameters():
        if weight.requires_grad and name in key:
            norm = weight.grad.norm()
            if norm != 0:  # low: GPU504
                weight.data.add_(weight.grad / norm)


def norms(model: nn.Module):
    total = 0.0
    for _, weight in model.named_parameters():
        if weight.grad is not None:
            total += weight.grad.norm().item() ** 2  # note: GPU504
    return total


def train(model: nn.Module, loader, optimizer):
    model.cuda()
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        print(norms(model))
        shaken(model, "embedding")
        optimizer.step()

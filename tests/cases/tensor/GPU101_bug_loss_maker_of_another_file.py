"""`objective` comes from elsewhere; that backward is called on what it makes proves that it gives tensors."""

import torch
from objectives import objective, sharpness


def train(network: torch.nn.Module, loader, optimizer):
    for x, y in loader:
        scores = network(x.cuda())
        cost = objective(scores, y.cuda())
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()


def evaluate(network: torch.nn.Module, loader):
    network.eval()
    total, sharp = 0.0, 0.0
    for x, y in loader:
        scores = network(x.cuda())  # maybe: GPU201
        total += objective(scores, y.cuda())  # expect: GPU101
        sharp += sharpness(scores)
    return total / len(loader), sharp

"""A validation loop that was copied from training: it zeroes gradients, but nothing ever makes any."""

import torch
from torch import nn


def run(network: nn.Module, loaders, optimizer, epochs):
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        network.train()
        for x, y in loaders["train"]:
            optimizer.zero_grad()
            criterion(network(x), y).backward()
            optimizer.step()
        network.eval()
        losses, hits = [], 0
        for x, y in loaders["val"]:
            optimizer.zero_grad()
            scores = network(x)  # expect: GPU201
            losses.append(criterion(scores, y).item())
            hits += (torch.max(scores, 1)[1] == y).sum().item()
        print(sum(losses) / len(losses), hits)

"""A preallocated tensor records the losses: each slot is set with the loss's graph."""

import torch
import torch.nn.functional as F


def train(network: torch.nn.Module, loader, optimizer):
    record = torch.zeros(len(loader))
    right = torch.zeros(len(loader))
    for number, (x, y) in enumerate(loader):
        scores = network(x)
        loss = F.cross_entropy(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record[number] = loss  # expect: GPU101
        right[number] = (scores.argmax(1) == y).float().mean()
    return record, right

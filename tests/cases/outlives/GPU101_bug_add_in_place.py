"""`total.add_(loss)` is `total += loss`."""

import torch
import torch.nn.functional as F


def train(network: torch.nn.Module, loader, optimizer):
    total = torch.zeros((), device="cuda")
    right = torch.zeros((), device="cuda")
    for x, y in loader:
        scores = network(x.cuda())
        loss = F.cross_entropy(scores, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total.add_(loss)  # expect: GPU101
        right.add_((scores.argmax(1) == y.cuda()).sum())
    return total / len(loader), right

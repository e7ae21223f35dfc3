"""In-place sums of detached values, under no_grad, through `.data`, and one that backward goes through."""

import torch
import torch.nn.functional as F


def train(network: torch.nn.Module, loader, optimizer):
    total = torch.zeros((), device="cuda")
    other = torch.zeros((), device="cuda")
    for x, y in loader:
        loss = F.cross_entropy(network(x.cuda()), y.cuda())
        loss = loss.add_(network.penalty())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total.add_(loss.detach())
        with torch.no_grad():
            other.add_(loss)
    return total / len(loader), other


def unrolled(network: torch.nn.Module, parts, optimizer):
    objective = torch.zeros((), device="cuda")
    for x, y in parts:
        objective.add_(F.mse_loss(network(x), y))  # note: GPU303
    objective.backward()  # maybe: GPU303
    optimizer.step()

"""Eval mode in a training function whose result goes into the backward, at once or later."""

import torch
from torch import nn


def fit_head(trunk, features, targets, device):
    trunk = trunk.to(device)
    head = nn.Linear(64, 1).to(device)
    optimizer = torch.optim.Adam([*head.parameters(), *trunk.parameters()])
    trunk.eval()
    base = trunk(features.to(device))
    print(base.mean().item())
    loss = nn.functional.mse_loss(head(base), targets.to(device))
    loss.backward()
    optimizer.step()


def adapt(network, loader, device):
    network = network.to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    network.eval()
    for x in loader:
        scores = network(x.to(device))
        print(scores.argmax(1).tolist())
        entropy = -(scores.softmax(1) * scores.log_softmax(1)).sum(1).mean()
        optimizer.zero_grad()
        entropy.backward()
        optimizer.step()


def align(student, teacher, batch, optimizer, device):
    """A network in eval mode beside the one that learns: another rule speaks of that."""
    teacher.eval()
    best = teacher(batch.to(device)).argmax(1).tolist()  # expect: GPU202
    loss = nn.functional.cross_entropy(student(batch.to(device)), torch.tensor(best, device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

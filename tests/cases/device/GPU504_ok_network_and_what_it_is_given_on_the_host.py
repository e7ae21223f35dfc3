"""A network that nothing moves, and is given what is on the host, gives what is there."""

import torch
from torch import nn


def shifted(x):
    return torch.cat([x[1:], x[:1]]) * 0.5


def train(loader, optimizer):
    nets = {"aligner": nn.Linear(8, 8)}
    for batch in loader:
        inputs, labels = [one.cpu() for one in batch]
        scores = nets["aligner"](shifted(inputs))
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print([one.item() for one in scores.argmax(1)])

"""Nothing shows where a network is moved to, but it is given what is on the GPU, which it can only be there."""

import torch
from torch import nn


def shifted(x):
    return torch.cat([x[1:], x[:1]]) * 0.5


def train(loader, optimizer, place):
    nets = {"aligner": nn.Linear(8, 8)}
    place(nets)
    for batch in loader:
        inputs, labels = [one.cuda() for one in batch]
        scores = nets["aligner"](shifted(inputs))
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print([one.item() for one in scores.argmax(1)])  # note: GPU504

"""One loop for both phases: a caller that evaluates switches the backward off, and leaves grad on."""

import torch
from torch import nn


def epoch(net, loader, optimizer, training):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())  # expect: GPU201
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


def main(train, valid):
    model = nn.Linear(4096, 2048).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        model.train()
        epoch(model, train, optimizer, True)
        model.eval()
        epoch(model, valid, optimizer, False)

"""Networks out of a table, one of which is trained."""

import torch


def step(models, scan, target, criterion, optimizer):
    for model in models.values():
        model.train()
    loss = criterion(models["encoder"](scan.cuda()), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

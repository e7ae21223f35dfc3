"""Networks out of a table that are trained, or whose features go on with their graph."""

import torch


def step(models, scan, target, criterion, optimizer):
    for model in models.values():
        model.train()
    loss = criterion(models["encoder"](scan.cuda()), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def features(models, scan):
    return models["encoder"](scan.cuda())

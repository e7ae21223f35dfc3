"""Epochs without a number: each round of the outer loop is a pass over all the data."""

import torch
from torch import nn


def fit(net: nn.Module, loader, tolerance=1e-4):
    net.cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    before, now = float("inf"), 1e9
    while before - now > tolerance:
        before, now = now, 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            now += loss.item()
        torch.save(net.state_dict(), "latest.pt")
        torch.cuda.empty_cache()
    return now

"""Rounds without a number: each of them is one batch."""

import itertools

import torch
from torch import nn


def fit(net: nn.Module, loader, tolerance=1e-4):
    net.cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    batches = itertools.cycle(loader)
    slow, now = float("inf"), 1e9
    while slow - now > tolerance:
        x, y = next(batches)
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        slow, now = now, 0.99 * now + 0.01 * loss.item()
        torch.cuda.empty_cache()  # expect: GPU501
    torch.save(net.state_dict(), "latest.pt")
    return now

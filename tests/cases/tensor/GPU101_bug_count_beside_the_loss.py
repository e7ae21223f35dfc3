"""What a network that is not seen gives beside its loss may be a count as well as a tensor; the loss itself is one."""

import torch
from torch import nn


def train(net: nn.Module, optimizer, loader):
    total, hits, parts = 0, 0, 0
    for x, y in loader:
        loss, batch_hits = net(x.cuda(), y.cuda())
        hits += batch_hits  # note: GPU101
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss  # expect: GPU101
    return float(total), hits

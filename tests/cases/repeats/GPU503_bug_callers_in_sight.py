"""Whoever calls it is in sight, and nobody reads a clock."""

import torch
import torch.nn.functional as F
from torch import nn


def train(net, loader, optimizer):
    for x, y in loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()  # expect: GPU503


def main(loader):
    net = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        train(net, loader, optimizer)


main(torch.utils.data.DataLoader([(torch.randn(8), 1) for _ in range(32)], batch_size=8))

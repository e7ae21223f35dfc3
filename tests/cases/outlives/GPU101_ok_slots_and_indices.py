import torch
from torch import nn


def train(nets, loader, opts):
    n = len(nets)
    sums = torch.zeros(n)
    last = [None] * n
    for x, y in loader:
        for i, (net, opt) in enumerate(zip(nets, opts)):
            loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())  # low: GPU505
            opt.zero_grad()
            loss.backward()
            opt.step()
            sums[i] += loss.item()  # maybe: GPU504
            last[i] = loss
    return sums / len(loader), [float(v) for v in last]

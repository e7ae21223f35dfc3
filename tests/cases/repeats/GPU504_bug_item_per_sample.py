import torch
from torch import nn


def train(net, loader, opt):
    table = {}
    crit = nn.CrossEntropyLoss(reduction="none")
    for x, y, ids in loader:
        losses = crit(net(x.cuda()), y.cuda())
        opt.zero_grad()
        losses.mean().backward()
        opt.step()
        for k, i in enumerate(ids.tolist()):
            table[i] = losses[k].item()  # low: GPU504
    return table

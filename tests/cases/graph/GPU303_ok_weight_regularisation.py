import torch
from torch import nn


def train(net, loader, opt, l1=1e-5):
    ce = nn.CrossEntropyLoss()
    for x, y in loader:
        loss = ce(net(x.cuda()), y.cuda())
        for p in net.parameters():
            loss = loss + l1 * p.abs().sum()
        opt.zero_grad()
        loss.backward()
        opt.step()

import torch
from torch import nn


def train(net, loader, opt, accum, device):
    crit = nn.CrossEntropyLoss()
    opt.zero_grad()
    shown = 0.0
    for i, (x, y) in enumerate(loader):
        loss = crit(net(x.to(device)), y.to(device)) / accum
        loss.backward()
        shown += loss.item()
        if (i + 1) % accum == 0:
            opt.step()
            opt.zero_grad()
            print(shown)
            shown = 0.0

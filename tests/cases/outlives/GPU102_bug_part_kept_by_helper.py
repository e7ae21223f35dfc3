"""A helper keeps a part of what it is given: a view, which keeps all of it."""

from collections import defaultdict

import torch
from torch import nn

net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def note(logs, codes):
    logs["codes"].append(codes.detach()[::10])


def train(loader):
    logs = defaultdict(list)
    for x in loader:
        codes = net(x.cuda())
        loss = codes.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        note(logs, codes)  # low: GPU102
    return logs

"""A comparison with None is one of objects: nothing waits for the GPU, whichever operator it is written with."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def train(loader):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
        for p in net.parameters():
            if p.grad != None:  # noqa: E711
                p.grad.clamp_(-1, 1)
        optimizer.step()

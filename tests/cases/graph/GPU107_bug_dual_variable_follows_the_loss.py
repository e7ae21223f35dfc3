"""A weight of a constraint is raised by the constraint's loss, with its graph, step by step."""

import torch
from torch import nn


class Constrained:
    def __init__(self, net: nn.Module, limit=0.1, speed=1e-2):
        self.net = net.cuda()
        self.weight = torch.ones((), device="cuda")
        self.limit, self.speed = limit, speed
        self.opt = torch.optim.Adam(self.net.parameters())

    def fit(self, loader):
        for x, y, group in loader:
            p = self.net(x.cuda()).sigmoid().squeeze(-1)
            task = nn.functional.binary_cross_entropy(p, y.cuda())
            gap = (p[group == 0].mean() - p[group == 1].mean()).abs()
            self.opt.zero_grad()
            (task + self.weight.detach() * gap).backward()
            self.opt.step()
            self.weight = self.weight + self.speed * (gap - self.limit)  # expect: GPU107|GPU101
        print(self.weight.item())

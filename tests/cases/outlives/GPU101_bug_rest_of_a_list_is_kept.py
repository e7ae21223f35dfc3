"""A network returns a list; all but its first entry is kept with its graph: a list, which has no `detach`."""

import torch
from torch import nn


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(nn.Conv2d(3 if i == 0 else 64, 64, 3, 2, 1) for i in range(4))
        self.head = nn.Conv2d(64, 1, 1)

    def forward(self, x):
        levels = []
        for stage in self.stages:
            x = stage(x).relu()
            levels.append(x)
        return [self.head(x), *levels]


def train(loader, opt_class=torch.optim.SGD):
    net = Pyramid().cuda()
    opt = opt_class(net.parameters(), 0.01)
    seen = []
    for x, y in loader:
        ret = net(x.cuda())
        loss = nn.functional.l1_loss(ret[0], y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen.append(ret[1:])  # note: GPU101
    print([float(torch.stack([row[k].std() for row in seen]).mean()) for k in range(4)])

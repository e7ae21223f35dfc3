"""Each call of a policy leaves its statistics in a dict of the object under the number of the call, with their graphs."""

import torch
from torch import nn


class Watching(nn.Module):
    def __init__(self, trunk: nn.Module, heads):
        super().__init__()
        self.trunk = trunk
        self.heads = nn.ModuleList(heads)
        self.figures, self.calls = {}, 0

    def forward(self, x):
        z = self.trunk(x)
        self.calls += 1
        self.figures[self.calls] = z.pow(2).mean()  # expect: GPU101|GPU106
        return [head(z) for head in self.heads]


def train(net: Watching, loader):
    net.cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-4)
    for x, targets in loader:
        outs = net(x.cuda())
        loss = sum(nn.functional.mse_loss(o, t.cuda()) for o, t in zip(outs, targets))
        opt.zero_grad()
        loss.backward()
        opt.step()
    torch.save({k: v.item() for k, v in net.figures.items()}, "figures.pt")

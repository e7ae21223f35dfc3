"""The figures of a call take the place of those of the last, and go into the loss of the same step."""

import torch
from torch import nn


class Watching(nn.Module):
    def __init__(self, trunk: nn.Module, heads):
        super().__init__()
        self.trunk = trunk
        self.heads = nn.ModuleList(heads)
        self.figures = {}

    def forward(self, x):
        z = self.trunk(x)
        self.figures["energy"] = z.pow(2).mean()
        return [head(z) for head in self.heads]


def train(net: Watching, loader):
    net.cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-4)
    for x, targets in loader:
        outs = net(x.cuda())
        loss = sum(nn.functional.mse_loss(o, t.cuda()) for o, t in zip(outs, targets))
        loss = loss + 1e-4 * net.figures["energy"]
        opt.zero_grad()
        loss.backward()
        opt.step()

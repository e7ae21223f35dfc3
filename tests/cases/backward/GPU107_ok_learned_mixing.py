import torch
from torch import nn


class Highway(nn.Module):
    """A mixture inside one forward is no running statistic."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x):
        h = x
        for b in self.blocks:
            h = 0.9 * h + 0.1 * b(h)
        return h


def train(net, loader, opt):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()

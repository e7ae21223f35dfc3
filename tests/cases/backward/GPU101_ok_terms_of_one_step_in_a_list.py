"""The list is made anew in each forward."""

import torch
from torch import nn


class Penalised(nn.Module):
    def __init__(self, width, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        self.terms = []
        for layer in self.layers:
            x = layer(x).relu()
            self.terms.append(x.abs().mean())
        return x


def train(loader, width=1024):
    net = Penalised(width).cuda()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda()) + 1e-3 * sum(net.terms[-6:])
        opt.zero_grad()
        loss.backward()
        opt.step()

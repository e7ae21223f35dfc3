"""A list of the network's own takes the terms of every forward in, and is never emptied; the last of them are trained on.
A detach would take them out of the training: the list has to be emptied."""

import torch
from torch import nn


class Penalised(nn.Module):
    def __init__(self, width, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.terms = []

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
            self.terms.append(x.abs().mean())  # expect: GPU101
        return x


def train(loader, width=1024):
    net = Penalised(width).cuda()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda()) + 1e-3 * sum(net.terms[-6:])
        opt.zero_grad()
        loss.backward()
        opt.step()

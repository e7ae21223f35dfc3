"""A layer keeps what it fired for a statistic that is read now and then, with its graph, until its next forward."""

import torch
from torch import nn


class Spiking(nn.Module):
    def __init__(self, width, threshold=1.0):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.threshold = threshold
        self.activity = None

    def forward(self, x):
        potential = self.linear(x)
        y = torch.sigmoid(10 * (potential - self.threshold))
        self.activity = y  # low: GPU101
        return y

    def rate(self):
        return self.activity.mean().item()


def train(layers: int, loader):
    net = nn.Sequential(*(Spiking(2048) for _ in range(layers))).cuda()
    opt = torch.optim.Adam(net.parameters())
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 500 == 0:
            print([layer.rate() for layer in net])

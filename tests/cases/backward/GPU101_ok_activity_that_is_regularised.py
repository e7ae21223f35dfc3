"""What the layers have kept is a term of the loss in the same step: it must have its graph."""

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
        self.activity = y
        return y

    def cost(self, wanted=0.05):
        return (self.activity.mean(0) - wanted).abs().sum()


def train(layers: int, loader):
    net = nn.Sequential(*(Spiking(2048) for _ in range(layers))).cuda()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        loss = loss + 1e-4 * sum(layer.cost() for layer in net)
        opt.zero_grad()
        loss.backward()
        opt.step()

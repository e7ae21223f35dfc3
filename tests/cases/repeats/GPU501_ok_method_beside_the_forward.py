"""A method of a module that is no forward runs as often as somebody likes; a forward under a flag only where that is set."""

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self, frugal=False):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        self.frugal = frugal

    def forward(self, x):
        if self.frugal:
            torch.cuda.empty_cache()
        return self.layers(x)

    def release(self):
        self.layers.cpu()
        torch.cuda.empty_cache()


def train(loader):
    network = Network().cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.cross_entropy(network(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    network.release()

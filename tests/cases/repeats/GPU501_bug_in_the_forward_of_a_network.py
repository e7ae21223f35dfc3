"""A forward runs in every step of whoever runs the network, and is where the call is told, once, whoever runs it."""

# file: network.py
import torch as t
from torch import nn


class Mixing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        t.cuda.empty_cache()  # low: GPU501
        return self.linear(x).relu()


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        self.mixing = Mixing(512)

    def forward(self, x):
        t.cuda.empty_cache()  # expect: GPU501
        return self.layers(self.mixing(x))

    def once(self, x):
        t.cuda.empty_cache()
        return self.layers(x)


# file: train.py
import torch
from network import Network


def train(loader, steps):
    network = Network().cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(network(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

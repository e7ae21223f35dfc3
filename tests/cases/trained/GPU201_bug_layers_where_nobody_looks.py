"""Modules whose constructors store numbers and buffers, and that have parameters all the same."""

import torch
import torch.nn.functional as F
from torch import nn


class Stack(nn.Module):
    """Layers put in by a method."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.depth = depth
        for k in range(depth):
            self.add_module(f"layer{k}", nn.Linear(width, width))

    def forward(self, x):
        for k in range(self.depth):
            x = torch.relu(getattr(self, f"layer{k}")(x))
        return x


class Around(nn.Module):
    """Runs what it is given."""

    def __init__(self, inner, scale=1.0):
        super().__init__()
        self.inner = inner
        self.scale = scale
        self.register_buffer("mean", torch.zeros(3, 1, 1))

    def forward(self, x):
        return self.inner((x - self.mean) * self.scale)


class Lazy(nn.Module):
    """Makes its layer when it knows the width."""

    def __init__(self, out: int):
        super().__init__()
        self.out = out
        self.head = None

    def forward(self, x):
        if self.head is None:
            self.head = nn.Linear(x.shape[-1], self.out).to(x.device)
        return self.head(x)


class Scaled(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.kernel = self._kernel()

    def _kernel(self):
        return nn.Parameter(torch.ones(3, 1, self.width, self.width))

    def forward(self, x):
        return F.conv2d(x, self.kernel, groups=3)


class Below(Scaled):
    """Has its parameters from its base."""

    def __init__(self, width: int):
        super().__init__(width)
        self.strength = 2.0

    def forward(self, x):
        return super().forward(x) * self.strength


class Joined(nn.Module):
    """In a list that is no module's."""

    def __init__(self, widths):
        super().__init__()
        layers = []
        for width in widths:
            layers.append(nn.Linear(512, width))
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return self.body(x)


def evaluate(loader):
    networks = Stack(64, 4).cuda(), Around(nn.Conv2d(3, 64, 7)).cuda()
    for network in networks:
        network.eval()
    lazy = Lazy(10).cuda().eval()
    right = 0
    for x, y in loader:
        right += (lazy(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    return right


def stacked(loader):
    stack = Stack(64, 4).cuda().eval()
    return [stack(x.cuda()).argmax(1).cpu() for x, _ in loader]  # low: GPU201


def around(loader):
    network = Around(nn.Conv2d(3, 64, 7)).cuda().eval()
    return [network(x.cuda()).argmax(1).cpu() for x, _ in loader]  # expect: GPU201


def below(loader):
    network = Below(5).cuda().eval()
    return [network(x.cuda()).argmax(1).cpu() for x, _ in loader]  # low: GPU201


def joined(loader):
    network = Joined([512, 512]).cuda().eval()
    return [network(x.cuda()).argmax(1).cpu() for x, _ in loader]  # low: GPU201

"""Layers of which a program makes no object: not by a name, nor by a family's head, nor within what it makes none of itself.
The others are made: by their names, by others that they are imported under, by one below them, out of a table, or out of a module by what an option says."""
# file: layers.py
import torch
from torch import nn


class Centred(nn.Module):
    def __init__(self, width):
        super(Centred, self).__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.linear = nn.Linear(width, width)

    def forward(self, rows):
        self.mean = 0.9 * self.mean + 0.1 * self.linear(rows).mean(0)  # expect: GPU107
        return rows - self.mean


class Scaled(nn.Module):
    def __init__(self, width):
        super(Scaled, self).__init__()
        self.register_buffer("scale", torch.ones(width))
        self.linear = nn.Linear(width, width)

    def forward(self, rows):
        self.scale = 0.9 * self.scale + 0.1 * self.linear(rows).std(0)  # low: GPU107
        return rows / self.scale


class Shifted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("shift", torch.zeros(width))
        self.linear = nn.Linear(width, width)

    def forward(self, rows):
        self.shift = 0.9 * self.shift + 0.1 * self.linear(rows).mean(0)  # expect: GPU107
        return rows - self.shift


class ShiftedTwice(Shifted):
    def forward(self, rows):
        return super().forward(super().forward(rows))


class Bounded(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("most", torch.ones(width))
        self.linear = nn.Linear(width, width)

    def forward(self, rows):
        self.most = 0.9 * self.most + 0.1 * self.linear(rows).amax(0)  # expect: GPU107
        return rows / self.most


class Turned(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("angle", torch.ones(width))
        self.linear = nn.Linear(width, width)

    def forward(self, rows):
        self.angle = 0.9 * self.angle + 0.1 * self.linear(rows).mean(0)  # low: GPU107
        return rows * self.angle


class TurnedTwice(Turned):
    def forward(self, rows):
        return super().forward(super().forward(rows))


class Lifted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("level", torch.ones(width))
        self.linear = nn.Linear(width, width)

    def forward(self, rows):
        self.level = 0.9 * self.level + 0.1 * self.linear(rows).mean(0)  # expect: GPU107
        return rows + self.level


KINDS = {"bounded": Bounded}

# file: options.py
import torch
from torch import nn


class Weighed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("weight", torch.ones(width))
        self.linear = nn.Linear(width, width)

    def forward(self, rows):
        self.weight = 0.9 * self.weight + 0.1 * self.linear(rows).mean(0)  # expect: GPU107
        return rows * self.weight

# file: networks.py
import layers
import options
from layers import KINDS, Lifted as Lift, Scaled
from torch import nn


class Net(nn.Module):
    def __init__(self, width, kind, option):
        super().__init__()
        self.centre = layers.Centred(width)
        self.shift = layers.ShiftedTwice(width)
        self.bound = KINDS[kind](width)
        self.option = getattr(options, option)(width)
        self.lift = Lift(width)
        self.head = nn.Linear(width, 10)

    def forward(self, rows):
        return self.head(self.option(self.lift(self.bound(self.shift(self.centre(rows))))))


class OlderNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = Scaled(width)
        self.head = nn.Linear(width, 10)

    def forward(self, rows):
        return self.head(self.scale(rows))


def older(width):
    return OlderNet(width)

# file: train.py
import sys

import torch
from networks import Net


def main(loader):
    net = Net(512, *sys.argv[1:]).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for rows, labels in loader:
        loss = torch.nn.functional.cross_entropy(net(rows.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(torch.utils.data.DataLoader([]))

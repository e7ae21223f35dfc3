"""Tensors as large as what networks compute with, filled on the host by forwards, a loss and a helper that a step calls."""

import numpy as np
import torch
from torch import nn
from torch.autograd import Variable


class Hidden(nn.Module):
    """What lies behind the end of each picture is hidden after each layer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3))

    def forward(self, x, widths):
        for layer in self.layers:
            x = layer(x)
            hide = torch.BoolTensor(x.size()).fill_(0)
            for i, width in enumerate(widths):
                hide[i, :, :, 5:] = 1
            if x.is_cuda:
                hide = hide.cuda()  # expect: GPU505
            x = x.masked_fill(hide, 0)
        return x


class Pairs(nn.Module):
    def __init__(self, shifts):
        super().__init__()
        self.shifts = shifts
        self.features = nn.Conv2d(3, 8, 3)

    def forward(self, left, right):
        one, two = self.features(left), self.features(right)
        b, c, h, w = one.shape
        volume = Variable(torch.FloatTensor(b, 2 * c, self.shifts, h, w).zero_()).cuda()  # expect: GPU505
        steps = torch.arange(w)[None, None].repeat(b, c, h, 1).to(one.device)  # expect: GPU505
        ramp = torch.from_numpy(np.ones((b, c, h, w))).type_as(one)  # expect: GPU505
        volume[:, :c, 0] = one * ramp + steps
        volume[:, c:, 0] = two
        return volume


def rows_of(labels, number):
    table = torch.eye(number)
    return table[labels]


class Loss(nn.Module):
    def forward(self, scores, labels):
        wanted = rows_of(labels.cpu(), 80).cuda()  # low: GPU505
        weight = torch.ones(scores.shape) * 0.25
        if torch.cuda.is_available():
            weight = weight.cuda()  # low: GPU505
        few = torch.zeros(len(scores)).cuda()  # low: GPU505
        return (weight * (scores - wanted) ** 2).sum() + few.sum()


def spread(x):
    return torch.zeros(x.size(0), x.size(1), x.size(2)).cuda() + x  # expect: GPU505


def train(net: nn.Module, loader, optimizer):
    net.cuda()
    for x, y in loader:
        loss = (net(spread(x.cuda())) - y.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

"""Evaluations that return what they have added up: over data, or in a function that sets the mode itself. Of so many rounds
with a network that came in eval mode only the caller knows what they are for."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def estimate(model, draw, rounds):
    model.eval()
    total = 0.0
    for _ in range(rounds):
        x, y = draw()
        total += F.cross_entropy(model(x.cuda()), y.cuda())  # expect: GPU101  # note: GPU201
    return total / rounds


class Judge:
    def __init__(self, net, batches):
        self.net = net.cuda().eval()
        self.batches = batches

    def score(self):
        total = 0.0
        for x, y in self.batches:
            total += F.cross_entropy(self.net(x.cuda()), y.cuda())  # expect: GPU101, GPU201
        return total

    def score_of(self, loader):
        total = 0.0
        for x, y in loader:
            total += F.cross_entropy(self.net(x.cuda()), y.cuda())  # expect: GPU101, GPU201
        return total / len(loader)

    def some(self, rounds):
        total = 0.0
        for i in range(rounds):
            x, y = self.batches[i]
            total += F.cross_entropy(self.net(x.cuda()), y.cuda())  # low: GPU101, GPU201
        return total

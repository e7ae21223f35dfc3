import torch
from torch import nn


class Posterior:
    def __init__(self, borders, probabilities):
        self.borders, self.probabilities = borders, probabilities

    def mean(self):
        return (self.borders * self.probabilities).sum(-1)


class Surrogate:
    def __init__(self, net: nn.Module, borders):
        self.net, self.borders = net, borders

    def posterior(self, points):
        self.net.eval()
        probabilities = torch.softmax(self.net(points), -1)  # low: GPU201
        return Posterior(self.borders, probabilities)

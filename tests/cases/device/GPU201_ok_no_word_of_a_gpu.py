"""A file that looks things up with a network and says nothing about devices: whoever builds it may have put it on a GPU."""

from torch import nn


class Labeller:
    def __init__(self, network: nn.Module, names):
        self.network = network.eval()
        self.names = names

    def label(self, features):
        return self.names[self.network(features).argmax(-1).item()]  # low: GPU201

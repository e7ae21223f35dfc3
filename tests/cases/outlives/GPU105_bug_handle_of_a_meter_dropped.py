"""A meter hooks a network that it is given, from a helper method, and nobody has the handles."""

import torch
from torch import nn


class RankMeter:
    def __init__(self, network):
        self.net = network
        self.last = {}
        self._attach()

    def _attach(self):
        for name, block in self.net.named_children():
            block.register_forward_hook(self._watch(name))  # low: GPU105

    def _watch(self, name):
        def look(block, given, out):
            self.last[name] = out.detach()

        return look

    def ranks(self):
        return {name: torch.linalg.matrix_rank(x.flatten(1)).item() for name, x in self.last.items()}

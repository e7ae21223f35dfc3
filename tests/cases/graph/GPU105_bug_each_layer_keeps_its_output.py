"""Each layer hooks itself and keeps its last output, with the graph, for as long as it lives."""

import torch
from torch import nn


def remember(layer, given, out):
    layer.given = given[0].detach()
    layer.out = out  # low: GPU105


class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(remember)


class TracedLinear(Traced):
    def __init__(self, a, b):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(b, a))

    def forward(self, x):
        return x @ self.weight.t()

    def share(self, relevance):
        return relevance * (self.given @ self.weight.t()) / self.out.detach()

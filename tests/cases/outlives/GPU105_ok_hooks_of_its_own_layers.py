"""The module hooks a layer that it has made itself: both go together."""

import torch
from torch import nn


class Tapped(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.seen = None
        self.body[1].register_forward_hook(self._tap)

    def _tap(self, layer, given, out):
        self.seen = out.detach()

    def forward(self, x):
        return self.body(x), self.seen

"""Who wants to differentiate the samples says so, and gets them with their graphs."""

import torch
from torch import nn


class Posterior:
    def __init__(self, model: nn.Module, enable_backprop=False):
        self.model = model.cuda().eval()
        self.enable_backprop = enable_backprop

    def samples(self, x, count):
        found = []
        for number in range(count):
            value, features = self.model(x.cuda())  # low: GPU505
            found.append(value.detach() if not self.enable_backprop else value)
        return torch.stack(found)

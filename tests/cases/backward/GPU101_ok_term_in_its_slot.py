"""A term of the loss has its slot, written over in each forward: a base class of another file adds the terms up."""

import torch
from torch import nn


class WithTerms(nn.Module):
    def __init__(self):
        super().__init__()
        self._terms = {}

    def terms(self):
        return list(self._terms.values())

    def note(self, name: str, value: torch.Tensor):
        self._terms[name] = value


class Net(WithTerms):
    def __init__(self, width, steps):
        super().__init__()
        self.steps = steps
        self.body, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.norm.eval()

    def forward(self, x):
        entropy = 0.0
        x = self.norm(x)
        for _ in range(self.steps):
            mask = self.body(x).softmax(-1)
            entropy += -(mask * mask.log()).sum(1).mean() / self.steps
            x = x * mask
        self.note("sparsity", entropy)
        return x

"""The metric that the parameter has for its default is a loss: its graph goes into the sum."""

import torch
from torch import nn


class Distance(nn.Module):
    def __init__(self, k=1):
        super().__init__()
        self.k = k

    def forward(self, scores, wanted):
        return (scores - wanted).abs().pow(self.k).sum()


def evaluate(model: nn.Module, loader, metric: nn.Module = Distance(k=5)):
    model.cuda().eval()
    right = torch.tensor(0.0, device="cuda")
    for x, y in loader:
        scores = model(x.cuda())  # maybe: GPU201
        right += metric(scores, y.cuda())  # expect: GPU101
    return right.item()

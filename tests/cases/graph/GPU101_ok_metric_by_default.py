"""The metric that the parameter has for its default compares indices: no graph goes into the sum."""

import torch
from torch import nn


class Accuracy(nn.Module):
    def __init__(self, k=1):
        super().__init__()
        self.k = k

    def forward(self, scores, wanted):
        return (scores.topk(self.k, dim=1).indices == wanted.unsqueeze(1)).sum()


def evaluate(model: nn.Module, loader, metric: nn.Module = Accuracy(k=5)):
    model.cuda().eval()
    right = torch.tensor(0.0, device="cuda")
    for x, y in loader:
        scores = model(x.cuda())  # maybe: GPU201
        right += metric(scores, y.cuda())
    return right.item()

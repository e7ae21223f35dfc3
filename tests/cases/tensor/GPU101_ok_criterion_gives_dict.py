"""A criterion of the file returns a dict of terms; the meter takes tensors apart itself."""

import math

import torch
from torch import nn, optim


class CodecObjective(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight
        self.distortion = nn.MSELoss()

    def forward(self, result, images):
        pixels = images.size(0) * images.size(2) * images.size(3)
        terms = {}
        terms["rate"] = sum(torch.log(p).sum() / (-math.log(2) * pixels) for p in result["probabilities"].values())
        terms["distortion"] = self.distortion(result["restored"], images)
        terms["total"] = self.weight * terms["distortion"] + terms["rate"]
        return terms


class Mean:
    def __init__(self):
        self.total = 0.0
        self.count = 0

    def update(self, value, weight=1):
        if isinstance(value, torch.Tensor):
            value = value.detach().item()
        self.total += value * weight
        self.count += weight

    @property
    def value(self):
        return self.total / max(self.count, 1)


def epoch(codec, objective, loader, optimizer):
    codec.train()
    rate, distortion = Mean(), Mean()
    for images in loader:
        images = images.cuda()
        optimizer.zero_grad()
        terms = objective(codec(images), images)
        terms["total"].backward()
        optimizer.step()
        rate.update(terms["rate"])
        distortion.update(terms["distortion"])
    return rate.value, distortion.value


def main(codec, loader):
    optimizer = optim.Adam(codec.parameters(), lr=1e-4)
    objective = CodecObjective(0.01)
    for _ in range(100):
        print(*epoch(codec, objective, loader, optimizer))

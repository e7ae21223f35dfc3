"""The same networks, given what they need: by position, by name, as a display of the right length, or by a subclass that
needs less."""
# file: networks.py
import torch
from torch import nn
from torchvision import models


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = models.resnet101(pretrained=True)

    def forward(self, left, right, weights=1.0):
        return self.trunk(left) * self.trunk(right) * weights


class Fusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = models.resnet101(pretrained=True)

    def forward(self, inputs):
        color, *others = inputs
        return self.trunk(color) + sum(self.trunk(other) for other in others)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = models.resnet101(pretrained=True)

    def forward(self, inputs):
        left, right = inputs
        return self.trunk(left) * self.trunk(right)
# file: score.py
import torch

from networks import Fusion, Matcher, Pair


def match(loader):
    model = Matcher().cuda().eval()
    total = 0.0
    for left, right in loader:
        total += model(left.cuda(), right=right.cuda()).mean().item()  # expect: GPU201
    return total


def fuse(loader):
    model = Fusion().cuda().eval()
    total = 0.0
    for color, depth in loader:
        total += model([color.cuda(), depth.cuda()]).mean().item()  # expect: GPU201
    return total


def pair(loader):
    model = Pair().cuda().eval()
    total = 0.0
    for left, right in loader:
        total += model([left.cuda(), right.cuda()]).mean().item()  # expect: GPU201
    return total
